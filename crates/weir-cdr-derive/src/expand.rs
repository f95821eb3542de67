//! Code generation for structs.
//!
//! Each field is accessed through a path with the functions of `CdrValue`: the trait itself,
//! `Bounded` for a field with `max_len`, or `Optional` for an `Option`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, GenericArgument, Ident, PathArguments, Result, Type};

use crate::attributes::{Extensibility, FieldAttributes, MEMBER_ID_MAX, StructAttributes};
use crate::runs::{Runs, Size, variable};
use crate::{crate_path, description, enumeration, keys};

/// Generates the implementations of `CdrValue` and, for a struct, `DdsType`.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    if !input.generics.params.is_empty() {
        return Err(Error::new(input.generics.span(), "generic types cannot be the type of a topic"));
    }
    match &input.data {
        Data::Enum(data) => enumeration::expand(input, data),
        Data::Struct(_) | Data::Union(_) => expand_struct(input),
    }
}

fn expand_struct(input: &DeriveInput) -> Result<TokenStream> {
    let fields = named_fields(input)?;
    let attributes = StructAttributes::parse(input)?;
    let cdr = crate_path::or_find(attributes.crate_path.as_ref());
    let members = members(fields, &cdr)?;

    let ident = &input.ident;
    let has_key = members.iter().any(|member| member.is_key);
    let (key, copy_key) = if has_key {
        let copy_key = keys::copy_key(&members, &cdr, attributes.extensibility);
        (keys::of_keyed(&members, &cdr, attributes.extensibility), copy_key)
    } else {
        (keys::of_keyless(&members, &cdr, attributes.extensibility), TokenStream::new())
    };
    let value = value_items(&members, &cdr, attributes.extensibility);
    let name = &attributes.name;
    let description = description::of_struct(&members, &cdr, &attributes);
    let extensibility = match attributes.extensibility {
        Extensibility::Final => quote!(Final),
        Extensibility::Appendable => quote!(Appendable),
    };
    Ok(quote! {
        #[automatically_derived]
        impl #cdr::CdrValue for #ident {
            #value
            #key
            #description
        }

        #[automatically_derived]
        impl #cdr::DdsType for #ident {
            const TYPE_NAME: &'static str = #name;
            const EXTENSIBILITY: #cdr::Extensibility = #cdr::Extensibility::#extensibility;
            const HAS_KEY: bool = #has_key;
            #copy_key
        }
    })
}

/// Maximum number of members for which `encode` is always inlined.
const INLINE_LEN_MAX: usize = 16;

/// A field of the struct.
#[derive(Clone)]
pub(crate) struct Member<'a> {
    pub(crate) ident: &'a Ident,
    /// Its type; of an optional member, that of the value.
    pub(crate) ty: &'a Type,
    /// The path to its functions: `<T as CdrValue>`, `Bounded<T, N>` or `Optional<T, ID>`.
    pub(crate) codec: TokenStream,
    pub(crate) size: Size,
    pub(crate) id: u32,
    pub(crate) is_key: bool,
    pub(crate) is_optional: bool,
}

impl<'a> Member<'a> {
    fn new(field: &'a syn::Field, attributes: &FieldAttributes, id: u32, cdr: &TokenStream) -> Result<Self> {
        let codec = match optional(&field.ty) {
            None => codec(&field.ty, attributes, cdr),
            Some(_) if attributes.is_key => {
                return Err(Error::new(field.span(), "a key member cannot be optional"));
            }
            Some(_) if attributes.max_len.is_some() => {
                return Err(Error::new(field.span(), "max_len is not supported on optional members"));
            }
            Some(inner) => quote_spanned!(inner.span() => #cdr::Optional::<#inner, #id>),
        };
        match &field.ident {
            Some(ident) => {
                let is_optional = optional(&field.ty).is_some();
                let size = if attributes.max_len.is_some() { Size::Variable } else { Size::of(&field.ty) };
                let ty = optional(&field.ty).unwrap_or(&field.ty);
                Ok(Self { ident, ty, codec, size, id, is_key: attributes.is_key, is_optional })
            }
            None => Err(Error::new(field.span(), "only named fields are supported")),
        }
    }

    /// The codec of the only field of a variant.
    pub(crate) fn of_union(field: &syn::Field, cdr: &TokenStream) -> Result<TokenStream> {
        let attributes = FieldAttributes::parse(field)?;
        if attributes.is_key || attributes.id.is_some() {
            return Err(Error::new(field.span(), "a union member cannot have a key or an id"));
        }
        if optional(&field.ty).is_some() {
            return Err(Error::new(field.span(), "a union member cannot be optional"));
        }
        Ok(codec(&field.ty, &attributes, cdr))
    }
}

/// The fields of a struct. Ids are consecutive unless given (DDS-XTypes 1.3, 7.3.1.2.1.1).
fn members<'a>(
    fields: &'a syn::punctuated::Punctuated<syn::Field, syn::Token![,]>,
    cdr: &TokenStream,
) -> Result<Vec<Member<'a>>> {
    let (mut next_id, mut used) = (0, std::collections::BTreeSet::new());
    let member = |field: &'a syn::Field| {
        let attributes = FieldAttributes::parse(field)?;
        let id = attributes.id.unwrap_or(next_id);
        next_id = id + 1;
        if id > MEMBER_ID_MAX || !used.insert(id) {
            return Err(Error::new(field.span(), format!("member id {id} is a duplicate or too large")));
        }
        Member::new(field, &attributes, id, cdr)
    };
    fields.iter().map(member).collect()
}

fn codec(ty: &Type, attributes: &FieldAttributes, cdr: &TokenStream) -> TokenStream {
    match attributes.max_len {
        None => quote_spanned!(ty.span() => <#ty as #cdr::CdrValue>),
        Some(max_len) => quote_spanned!(ty.span() => #cdr::Bounded::<#ty, #max_len>),
    }
}

/// Returns the `T` of an `Option<T>`, which is recognised by its name.
fn optional(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    match &last.arguments {
        PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
            Some(GenericArgument::Type(inner)) => Some(inner),
            _ => None,
        },
        PathArguments::None | PathArguments::Parenthesized(_) => None,
    }
}

fn named_fields(input: &DeriveInput) -> Result<&syn::punctuated::Punctuated<syn::Field, syn::Token![,]>> {
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) if !fields.named.is_empty() => Ok(&fields.named),
            _ => Err(Error::new(input.ident.span(), "DdsType needs a struct with at least one named field")),
        },
        Data::Enum(_) | Data::Union(_) => Err(Error::new(
            input.ident.span(),
            "only structs and enums are supported: write a union as an enum",
        )),
    }
}

/// Generates the items of `CdrValue` for the whole value.
fn value_items(members: &[Member<'_>], cdr: &TokenStream, extensibility: Extensibility) -> TokenStream {
    let idents: Vec<_> = members.iter().map(|member| member.ident).collect();
    let codecs: Vec<_> = members.iter().map(|member| &member.codec).collect();
    let delimited = Delimited::new(extensibility);
    let Delimited { offset, open_writer, close_writer, skip, .. } = &delimited;
    let runs = Runs { cdr, layout: quote!(LAYOUT) };
    let all: Vec<_> = members.iter().collect();
    let (decode_delimited, decode_into_delimited) = match extensibility {
        Extensibility::Final => Default::default(),
        Extensibility::Appendable => decode_delimited(&runs.decode_into_delimited(&all)),
    };
    // Inlined with an offset known to be 0, most alignment and checks are resolved at compile time.
    let inline = if members.len() <= INLINE_LEN_MAX { quote!(#[inline(always)]) } else { quote!(#[inline]) };
    let copy = delimited.around_copy(&quote!(#(#codecs::copy(reader, writer)?;)*));
    let bulk = bulk_items(members, cdr, &delimited, &inline);
    let (encode, decode_into) = (runs.encode(&all, &quote!(encode)), runs.decode_into(&all));
    let (decode, variables) =
        (runs.decode(&all), idents.iter().map(|ident| variable(ident)).collect::<Vec<_>>());
    let Delimited { layout, .. } = &delimited;
    quote! {
        const LAYOUT: #cdr::Layout = #cdr::Layout::EMPTY #(.then(#codecs::LAYOUT))* #layout;

        #[inline]
        fn end_offset(&self, offset: usize, encoding: #cdr::Encoding) -> usize {
            #offset
            #(let offset = #codecs::end_offset(&self.#idents, offset, encoding);)*
            offset
        }

        #inline
        fn encode(&self, writer: &mut #cdr::CdrWriter<'_>) -> #cdr::Result {
            #open_writer
            #encode
            #close_writer
            ::core::result::Result::Ok(())
        }

        #[inline]
        fn decode(reader: &mut #cdr::CdrReader<'_>) -> #cdr::Result<Self> {
            #decode_delimited
            #(let #variables;)*
            #decode
            ::core::result::Result::Ok(Self { #(#idents: #variables,)* })
        }

        #inline
        fn decode_into(&mut self, reader: &mut #cdr::CdrReader<'_>) -> #cdr::Result {
            #decode_into_delimited
            #decode_into
            ::core::result::Result::Ok(())
        }

        #[inline]
        fn skip(reader: &mut #cdr::CdrReader<'_>) -> #cdr::Result {
            #skip
            #(#codecs::skip(reader)?;)*
            ::core::result::Result::Ok(())
        }

        #[inline]
        fn copy(reader: &mut #cdr::CdrReader<'_>, writer: &mut #cdr::CdrWriter<'_>) -> #cdr::Result {
            #copy
            ::core::result::Result::Ok(())
        }

        #bulk
    }
}

/// Generates the items of `CdrValue` for a struct whose last member may end in a bulk.
fn bulk_items(
    members: &[Member<'_>],
    cdr: &TokenStream,
    delimited: &Delimited,
    inline: &TokenStream,
) -> TokenStream {
    // The key must be known without the bulk.
    let Some((last, others)) = members.split_last().filter(|(last, _)| !last.is_optional && !last.is_key)
    else {
        return TokenStream::new();
    };
    let (last_ident, last_codec) = (last.ident, &last.codec);
    let others: Vec<_> = others.iter().collect();
    let encode_others = Runs { cdr, layout: quote!(LAYOUT) }.encode(&others, &quote!(encode));
    let Delimited { open_writer, close_writer_before_bulk, .. } = delimited;
    quote! {
        const BULK_ELEMENT: ::core::option::Option<usize> = #last_codec::BULK_ELEMENT;

        #[inline(always)]
        fn bulk_bytes(&self) -> ::core::option::Option<&[u8]> {
            #last_codec::bulk_bytes(&self.#last_ident)
        }

        #inline
        fn encode_before_bulk(&self, count: usize, writer: &mut #cdr::CdrWriter<'_>) -> #cdr::Result {
            #open_writer
            #encode_others
            #last_codec::encode_before_bulk(&self.#last_ident, count, writer)?;
            #close_writer_before_bulk
            ::core::result::Result::Ok(())
        }

        #[inline]
        fn bulk_count(&self) -> usize {
            #last_codec::bulk_count(&self.#last_ident)
        }

        #[inline]
        fn encode_bulk_part(&self, at: usize, out: &mut [u8]) -> #cdr::Result {
            #last_codec::encode_bulk_part(&self.#last_ident, at, out)
        }
    }
}

/// Generates the code that reads a delimited value, for `decode` and `decode_into`. Trailing
/// members that the sender does not have take their defaults.
fn decode_delimited(members: &TokenStream) -> (TokenStream, TokenStream) {
    let decode = quote! {
        if reader.encoding().delimits_appendables() {
            let mut value = <Self as ::core::default::Default>::default();
            value.decode_into(reader)?;
            return ::core::result::Result::Ok(value);
        }
    };
    let decode_into = quote! {
        if reader.encoding().delimits_appendables() {
            let open = reader.open_appendable()?;
            #members
            reader.close_delimited(open);
            return ::core::result::Result::Ok(());
        }
    };
    (decode, decode_into)
}

/// The code around the members of an appendable struct or union, which XCDR2 delimits; empty for a
/// final one.
#[derive(Default)]
pub(crate) struct Delimited {
    is_appendable: bool,
    /// The layout apart from its members'.
    pub(crate) layout: TokenStream,
    pub(crate) offset: TokenStream,
    open_reader: TokenStream,
    close_reader: TokenStream,
    pub(crate) open_writer: TokenStream,
    pub(crate) close_writer: TokenStream,
    close_writer_before_bulk: TokenStream,
    pub(crate) skip: TokenStream,
}

impl Delimited {
    pub(crate) fn new(extensibility: Extensibility) -> Self {
        match extensibility {
            Extensibility::Final => Self::default(),
            Extensibility::Appendable => Self {
                is_appendable: true,
                layout: quote!(.appendable()),
                offset: quote!(let offset = encoding.appendable_delimiter_end(offset);),
                open_reader: quote!(let open_reader = reader.open_appendable()?;),
                close_reader: quote!(reader.close_delimited(open_reader);),
                open_writer: quote!(let open_writer = writer.open_appendable()?;),
                close_writer: quote!(writer.close_delimited(open_writer)?;),
                close_writer_before_bulk: quote! {
                    let rest = count.saturating_mul(Self::BULK_ELEMENT.unwrap_or(0));
                    writer.close_delimited_before(open_writer, rest)?;
                },
                skip: quote! {
                    if reader.skip_appendable()? {
                        return ::core::result::Result::Ok(());
                    }
                },
            },
        }
    }

    /// Generates code that passes over the last members. Where they are delimited, it does nothing: the end of the
    /// value is known, and the sender may not have them.
    pub(crate) fn skip_rest(&self, rest: &[Member<'_>]) -> TokenStream {
        let codecs: Vec<_> = rest.iter().map(|member| &member.codec).collect();
        let skips = quote!(#(#codecs::skip(reader)?;)*);
        if rest.is_empty() || !self.is_appendable {
            return skips;
        }
        quote!(if !reader.encoding().delimits_appendables() { #skips })
    }

    pub(crate) fn around_read(&self, steps: &TokenStream) -> TokenStream {
        let Self { open_reader, close_reader, .. } = self;
        quote!(#open_reader #steps #close_reader)
    }

    pub(crate) fn around_copy(&self, steps: &TokenStream) -> TokenStream {
        let Self { open_writer, close_writer, .. } = self;
        let read = self.around_read(steps);
        quote!(#open_writer #read #close_writer)
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn refusal(input: &DeriveInput) -> String {
        expand(input).map_or_else(|error| error.to_string(), |tokens| panic!("accepted: {tokens}"))
    }

    /// The generated code without the spaces that `quote` inserts.
    fn generated(input: &DeriveInput) -> String {
        let tokens = expand(input).unwrap();
        let file: syn::File = syn::parse2(tokens.clone()).unwrap();
        assert_eq!(file.items.len(), 2);
        tokens.to_string().replace(' ', "")
    }

    #[test]
    fn only_structs_with_named_fields_are_accepted() {
        let named = "DdsType needs a struct with at least one named field";
        assert_eq!(
            refusal(&parse_quote!(
                struct Unit;
            )),
            named
        );
        assert_eq!(
            refusal(&parse_quote!(
                struct Tuple(u32);
            )),
            named
        );
        assert_eq!(
            refusal(&parse_quote!(
                struct Empty {}
            )),
            named
        );
        let kind = "only structs and enums are supported: write a union as an enum";
        assert_eq!(refusal(&parse_quote!(union Either { a: u32, b: f32 })), kind);
        let generic = "generic types cannot be the type of a topic";
        assert_eq!(
            refusal(&parse_quote!(
                struct Pair<T> {
                    a: T,
                }
            )),
            generic
        );
        assert_eq!(
            refusal(&parse_quote!(
                struct Array<const N: usize> {
                    a: [u8; N],
                }
            )),
            generic
        );
    }

    #[test]
    fn key_code_is_only_generated_for_types_with_a_key() {
        let without = generated(&parse_quote! {
            #[dds(extensibility = "final")]
            struct Plain { x: i32 }
        });
        assert!(without.contains("constHAS_KEY:bool=false;"));
        assert!(!without.contains("_as_key"));
        let with = generated(&parse_quote! {
            #[dds(extensibility = "final")]
            struct Keyed { #[dds(key)] id: u8, x: i32 }
        });
        assert!(with.contains("constHAS_KEY:bool=true;"));
        assert!(with.contains("fnencode_as_key"));
    }

    #[test]
    fn copying_a_key_stops_at_the_last_key_member() {
        let code = generated(&parse_quote! {
            #[dds(extensibility = "final", crate = "cdr")]
            struct Keyed { a: u8, #[dds(key)] b: u16, c: u32 }
        });
        let copy_key = code.split("fncopy_key").last().unwrap();
        assert!(copy_key.contains(
            "<u8ascdr::CdrValue>::skip(reader)?;<u16ascdr::CdrValue>::copy_as_key(reader,writer)?;"
        ));
        assert!(!copy_key.contains("u32"));
    }

    #[test]
    fn bounded_members_go_through_their_bound() {
        let code = generated(&parse_quote! {
            #[dds(extensibility = "final", crate = "weir_dds::cdr")]
            struct Text { #[dds(max_len = 128)] text: String }
        });
        assert!(code.contains("weir_dds::cdr::Bounded::<String,128u32>::encode(&self.text,writer)?;"));
        assert!(!code.contains("weir_cdr"));
    }

    #[test]
    fn only_appendable_types_are_delimited() {
        let is_delimited = |input: &DeriveInput| generated(input).contains("open_appendable");
        assert!(is_delimited(&parse_quote!(
            #[dds(extensibility = "appendable")]
            struct A {
                x: i32,
            }
        )));
        assert!(!is_delimited(&parse_quote!(
            #[dds(extensibility = "final")]
            struct F {
                x: i32,
            }
        )));
    }

    #[test]
    fn raw_identifiers_lose_their_prefix_in_the_type_name_only() {
        let code = generated(&parse_quote!(
            #[dds(extensibility = "final")]
            struct r#type {
                r#move: i32,
            }
        ));
        assert!(code.contains("TYPE_NAME:&'staticstr=\"type\";"));
        assert!(code.contains("self.r#move"));
    }
}
