//! The derive macro behind `weir_cdr::DdsType`. Use it through `weir-cdr` or `weir-dds`; it is of no use alone.
//!
//! | module | content |
//! |---|---|
//! | `attributes` | what `#[dds(..)]` says, and what it may not say |
//! | `crate_path` | by which path the generated code finds `weir-cdr` |
//! | `enumeration` | the generated code for enums: enumerations and unions |
//! | `expand` | the generated code for structs |
//! | `runs` | members in a row at constant offsets |
//!
//! The attributes are documented at the trait, `weir_cdr::DdsType`. Deliberately not here: generic
//! types and mutable extensibility, each refused with a message that says so.

use proc_macro::TokenStream;

mod attributes;
mod crate_path;
mod enumeration;
mod expand;
mod runs;

/// Implements `CdrValue` and `DdsType` for a struct with named fields, and `CdrValue` for an enum.
#[proc_macro_derive(DdsType, attributes(dds))]
pub fn derive_dds_type(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::expand(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}
