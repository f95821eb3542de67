//! The derive macro after `weir_cdr::DdsType`. Use it through `weir-cdr` or `weir-dds`.
//!
//! | module | content |
//! |---|---|
//! | `attributes` | parses and checks `#[dds(..)]` |
//! | `crate_path` | finds the path of `weir-cdr` for the generated code |
//! | `description` | what a type consists of |
//! | `enumeration` | code generation for enums: enumerations and unions |
//! | `expand` | code generation for structs |
//! | `keys` | code generation for the keys of structs |
//! | `runs` | consecutive members at constant offsets |
//!
//! The attributes are documented at the trait, `weir_cdr::DdsType`. Generic types and mutable
//! extensibility are not supported; each is refused with an error.

use proc_macro::TokenStream;

mod attributes;
mod crate_path;
mod description;
mod enumeration;
mod expand;
mod keys;
mod runs;

/// Implements `CdrValue` and `DdsType` for a struct with named fields, and `CdrValue` for an enum.
#[proc_macro_derive(DdsType, attributes(dds))]
pub fn derive_dds_type(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::expand(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}
