//! By which path the generated code finds weir-cdr.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Ident, Path};

/// The path that an attribute gives, or else what [`find`] finds.
pub(crate) fn or_find(given: Option<&Path>) -> TokenStream {
    given.map_or_else(find, |path| quote!(#path))
}

/// The path of weir-cdr in the package that is being compiled: through weir-dds if it depends on that, else directly.
fn find() -> TokenStream {
    match (crate_name("weir-dds"), crate_name("weir-cdr")) {
        (Ok(FoundCrate::Name(dds)), _) => {
            let dds = Ident::new(&dds, Span::call_site());
            quote!(::#dds::cdr)
        }
        (_, Ok(FoundCrate::Name(cdr))) => {
            let cdr = Ident::new(&cdr, Span::call_site());
            quote!(::#cdr)
        }
        // Inside weir-cdr itself, which calls itself by this name, or where the manifest cannot be read.
        _ => quote!(::weir_cdr),
    }
}
