//! Code generation for `CdrValue::DESCRIPTION`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Ident;

use crate::attributes::{Extensibility, StructAttributes, unraw};
use crate::expand::Member;

/// The description of a struct.
pub(crate) fn of_struct(
    members: &[Member<'_>],
    cdr: &TokenStream,
    attributes: &StructAttributes,
) -> TokenStream {
    let name = &attributes.name;
    let extensibility = match attributes.extensibility {
        Extensibility::Final => quote!(Final),
        Extensibility::Appendable => quote!(Appendable),
    };
    let members = members.iter().map(|Member { ident, ty, codec, is_optional, .. }| {
        let name = unraw(ident);
        let open = if *is_optional {
            quote!(::core::option::Option::Some(#codec::open))
        } else {
            quote!(::core::option::Option::None)
        };
        quote! {
            #cdr::description::MemberDescription {
                name: #name,
                of: <#ty as #cdr::CdrValue>::DESCRIPTION,
                layout: #codec::LAYOUT,
                skip: #codec::skip,
                open: #open,
            }
        }
    });
    quote! {
        const DESCRIPTION: #cdr::TypeDescription = #cdr::TypeDescription::Struct {
            description: &#cdr::description::StructDescription {
                name: #name,
                extensibility: #cdr::Extensibility::#extensibility,
                members: &[#(#members),*],
            },
        };
    }
}

/// The description of an enumeration. `repr`: its integer type on the wire.
pub(crate) fn of_enumeration(names: &[&Ident], repr: &Ident, cdr: &TokenStream) -> TokenStream {
    let integer = format_ident!("{}", repr.to_string().to_uppercase());
    let labels = names.iter().map(|name| unraw(name));
    quote! {
        const DESCRIPTION: #cdr::TypeDescription = #cdr::TypeDescription::Enumeration {
            integer: #cdr::description::Primitive::#integer,
            enumerators: &[#((#labels, Self::#names as i64)),*],
        };
    }
}
