//! The derive macro behind `weir_cdr::DdsType`. Use it through `weir-cdr` or `weir-dds`; it is of no use alone.
//!
//! | module | content |
//! |---|---|
//! | `attributes` | what `#[dds(..)]` says, and what it may not say |
//! | `crate_path` | by which path the generated code finds `weir-cdr` |
//! | `expand` | the generated code |
//!
//! The attributes are documented at the trait, `weir_cdr::DdsType`. Deliberately not here: enums, unions, generic
//! structs, optional members, and mutable extensibility, each refused with a message that says so.

use proc_macro::TokenStream;

mod attributes;
mod crate_path;
mod expand;

/// Implements `CdrValue` and `DdsType` for a struct with named fields.
#[proc_macro_derive(DdsType, attributes(dds))]
pub fn derive_dds_type(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::expand(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}
