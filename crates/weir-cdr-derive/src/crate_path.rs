//! Finds the path of weir-cdr for the generated code.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Ident, Path};

/// Returns the path given by an attribute, or the one that [`find`] finds.
pub(crate) fn or_find(given: Option<&Path>) -> TokenStream {
    given.map_or_else(find, |path| quote!(#path))
}

/// Finds weir-cdr in the package being compiled: through weir-dds if it depends on that, otherwise
/// directly.
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
        // Inside weir-cdr, which refers to itself by this name, or if the manifest cannot be read.
        _ => quote!(::weir_cdr),
    }
}
