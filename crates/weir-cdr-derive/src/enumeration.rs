//! Code generation for enums: enumerations (without fields) and unions (with fields).

use proc_macro2::{Literal, TokenStream};
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{DataEnum, DeriveInput, Error, Fields, Ident, Result, Token, Variant};

use crate::attributes::{EnumerationAttributes, UnionAttributes, VariantAttributes};
use crate::description;
use crate::expand::{Delimited, Member};

/// The implementation of `CdrValue` for an enum.
pub(crate) fn expand(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    if data.variants.is_empty() {
        return Err(Error::new(input.ident.span(), "an enum needs at least one variant"));
    }
    if data.variants.iter().all(|variant| matches!(variant.fields, Fields::Unit)) {
        expand_enumeration(input, &data.variants)
    } else {
        expand_union(input, &data.variants)
    }
}

fn expand_enumeration(input: &DeriveInput, variants: &Punctuated<Variant, Token![,]>) -> Result<TokenStream> {
    let EnumerationAttributes { repr, crate_path } = EnumerationAttributes::parse(input)?;
    let cdr = crate::crate_path::or_find(crate_path.as_ref());
    for variant in variants {
        VariantAttributes::parse_none(variant)?;
    }
    let ident = &input.ident;
    let names: Vec<_> = variants.iter().map(|variant| &variant.ident).collect();
    let description = description::of_enumeration(&names, &repr, &cdr);
    Ok(quote! {
        const _: () = {
            #(assert!(
                #ident::#names as i64 >= #repr::MIN as i64 && #ident::#names as i64 <= #repr::MAX as i64,
                "an enumerator does not fit into the bit bound of its enumeration"
            );)*
        };

        #[automatically_derived]
        impl #cdr::CdrValue for #ident {
            const LAYOUT: #cdr::Layout = <#repr as #cdr::CdrValue>::LAYOUT;
            #description

            #[inline]
            fn end_offset(&self, offset: usize, encoding: #cdr::Encoding) -> usize {
                <#repr as #cdr::CdrValue>::end_offset(&0, offset, encoding)
            }

            #[inline]
            fn encode(&self, writer: &mut #cdr::CdrWriter<'_>) -> #cdr::Result {
                let value = match self {
                    #(Self::#names => Self::#names as #repr,)*
                };
                <#repr as #cdr::CdrValue>::encode(&value, writer)
            }

            #[inline]
            fn decode(reader: &mut #cdr::CdrReader<'_>) -> #cdr::Result<Self> {
                match <#repr as #cdr::CdrValue>::decode(reader)? {
                    #(value if value == Self::#names as #repr => ::core::result::Result::Ok(Self::#names),)*
                    value => ::core::result::Result::Err(#cdr::CdrError::UnknownDiscriminator(value as i64)),
                }
            }

            #[inline]
            fn skip(reader: &mut #cdr::CdrReader<'_>) -> #cdr::Result {
                <#repr as #cdr::CdrValue>::skip(reader)
            }

            #[inline]
            fn copy(reader: &mut #cdr::CdrReader<'_>, writer: &mut #cdr::CdrWriter<'_>) -> #cdr::Result {
                #cdr::CdrValue::encode(&<Self as #cdr::CdrValue>::decode(reader)?, writer)
            }
        }
    })
}

/// A variant of a union.
struct Alternative<'a> {
    ident: &'a Ident,
    /// The path to the member's functions, if there is a member.
    codec: Option<TokenStream>,
    /// The discriminators of this variant, the first of which is written; empty for a default
    /// without cases.
    cases: Vec<i128>,
    is_default: bool,
}

impl<'a> Alternative<'a> {
    fn new(variant: &'a Variant, cdr: &TokenStream) -> Result<Self> {
        let VariantAttributes { cases, is_default } = VariantAttributes::parse(variant)?;
        let ident = &variant.ident;
        if cases.is_empty() && !is_default {
            let text = "missing discriminator: add #[dds(case = N)] or #[dds(default)]";
            return Err(Error::new(ident.span(), text));
        }
        let codec = match &variant.fields {
            Fields::Unit => None,
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                let member = fields.unnamed.first().map(|field| Member::of_union(field, cdr));
                member.transpose()?
            }
            Fields::Unnamed(_) | Fields::Named(_) => {
                let text = "a union variant must have one unnamed field or none";
                return Err(Error::new(ident.span(), text));
            }
        };
        Ok(Self { ident, codec, cases, is_default })
    }

    /// The pattern of the variant with its member as `value`.
    fn pattern(&self) -> TokenStream {
        let ident = self.ident;
        if self.codec.is_some() { quote!(Self::#ident(value)) } else { quote!(Self::#ident) }
    }

    /// The pattern of the discriminators.
    fn case_pattern(&self) -> TokenStream {
        let cases = self.cases.iter().map(|case| literal(*case));
        if self.is_default { quote!(_) } else { quote!(#(#cases)|*) }
    }
}

/// Checks that cases are distinct and that there is at most one default, and gives the default a
/// discriminator.
fn settle(alternatives: &mut [Alternative<'_>]) -> Result<()> {
    let mut used = std::collections::BTreeSet::new();
    for alternative in &*alternatives {
        if let Some(case) = alternative.cases.iter().find(|case| !used.insert(**case)) {
            return Err(Error::new(alternative.ident.span(), format!("duplicate case {case}")));
        }
    }
    let mut defaults = alternatives.iter_mut().filter(|alternative| alternative.is_default);
    if let Some(alternative) = defaults.next()
        && alternative.cases.is_empty()
    {
        alternative.cases.extend((0..).find(|case| !used.contains(case)));
    }
    match defaults.next() {
        Some(second) => Err(Error::new(second.ident.span(), "only one variant can be the default")),
        None => Ok(()),
    }
}

fn expand_union(input: &DeriveInput, variants: &Punctuated<Variant, Token![,]>) -> Result<TokenStream> {
    let attributes = UnionAttributes::parse(input)?;
    let cdr = crate::crate_path::or_find(attributes.crate_path.as_ref());
    let mut alternatives =
        variants.iter().map(|variant| Alternative::new(variant, &cdr)).collect::<Result<Vec<_>>>()?;
    settle(&mut alternatives)?;
    // The default is last because its pattern matches all cases.
    alternatives.sort_by_key(|alternative| alternative.is_default);

    let ident = &input.ident;
    let body = union_items(&alternatives, &cdr, &attributes);
    Ok(quote! {
        #[automatically_derived]
        impl #cdr::CdrValue for #ident {
            #body
        }
    })
}

fn union_items(
    alternatives: &[Alternative<'_>],
    cdr: &TokenStream,
    attributes: &UnionAttributes,
) -> TokenStream {
    let discriminator = &attributes.discriminator;
    let discriminator = quote!(<#discriminator as #cdr::CdrValue>);
    let delimited = Delimited::new(attributes.extensibility);
    let Delimited { layout, offset, open_writer, close_writer, skip, .. } = &delimited;
    let arms = Arms::new(alternatives, cdr, &discriminator);
    let Arms { layouts, end_offsets, encodes, decodes, skips, copies } = &arms;
    let unknown = if alternatives.iter().any(|alternative| alternative.is_default) {
        TokenStream::new()
    } else {
        quote!(other => {
            return ::core::result::Result::Err(#cdr::CdrError::UnknownDiscriminator(other as i64));
        })
    };
    let decode = delimited.around_read(&quote! {
        let decoded = match #discriminator::decode(reader)? { #(#decodes,)* #unknown };
    });
    let copy = delimited.around_copy(&quote! {
        match #discriminator::decode(reader)? { #(#copies,)* #unknown }
    });
    quote! {
        const LAYOUT: #cdr::Layout = {
            let alternatives = [#(#layouts),*];
            let (mut layout, mut index) = (alternatives[0], 1);
            while index < alternatives.len() {
                layout = layout.or(alternatives[index]);
                index += 1;
            }
            #discriminator::LAYOUT.then(layout) #layout
        };

        #[inline]
        fn end_offset(&self, offset: usize, encoding: #cdr::Encoding) -> usize {
            #offset
            let offset = #discriminator::end_offset(&0, offset, encoding);
            match self { #(#end_offsets,)* }
        }

        #[inline]
        fn encode(&self, writer: &mut #cdr::CdrWriter<'_>) -> #cdr::Result {
            #open_writer
            match self { #(#encodes,)* }
            #close_writer
            ::core::result::Result::Ok(())
        }

        #[inline]
        fn decode(reader: &mut #cdr::CdrReader<'_>) -> #cdr::Result<Self> {
            #decode
            ::core::result::Result::Ok(decoded)
        }

        #[inline]
        fn skip(reader: &mut #cdr::CdrReader<'_>) -> #cdr::Result {
            #skip
            match #discriminator::decode(reader)? { #(#skips,)* #unknown }
            ::core::result::Result::Ok(())
        }

        #[inline]
        fn copy(reader: &mut #cdr::CdrReader<'_>, writer: &mut #cdr::CdrWriter<'_>) -> #cdr::Result {
            #copy
            ::core::result::Result::Ok(())
        }
    }
}

/// The code that differs between the variants of a union, for each function.
#[derive(Default)]
struct Arms {
    layouts: Vec<TokenStream>,
    end_offsets: Vec<TokenStream>,
    encodes: Vec<TokenStream>,
    decodes: Vec<TokenStream>,
    skips: Vec<TokenStream>,
    copies: Vec<TokenStream>,
}

impl Arms {
    fn new(alternatives: &[Alternative<'_>], cdr: &TokenStream, discriminator: &TokenStream) -> Self {
        let mut arms = Self::default();
        for alternative in alternatives {
            let Alternative { ident, codec, cases, .. } = alternative;
            let (pattern, case) = (alternative.pattern(), alternative.case_pattern());
            let written = cases.first().map(|case| literal(*case));
            let write = quote!(#discriminator::encode(&#written, writer)?);
            if let Some(codec) = codec {
                arms.layouts.push(quote!(#codec::LAYOUT));
                arms.end_offsets.push(quote!(#pattern => #codec::end_offset(value, offset, encoding)));
                arms.encodes.push(quote!(#pattern => { #write; #codec::encode(value, writer)?; }));
                arms.decodes.push(quote!(#case => Self::#ident(#codec::decode(reader)?)));
                arms.skips.push(quote!(#case => #codec::skip(reader)?));
                arms.copies.push(quote!(#case => { #write; #codec::copy(reader, writer)?; }));
            } else {
                arms.layouts.push(quote!(#cdr::Layout::EMPTY));
                arms.end_offsets.push(quote!(#pattern => offset));
                arms.encodes.push(quote!(#pattern => #write));
                arms.decodes.push(quote!(#case => Self::#ident));
                arms.skips.push(quote!(#case => ()));
                arms.copies.push(quote!(#case => #write));
            }
        }
        arms
    }
}

fn literal(number: i128) -> TokenStream {
    let digits = Literal::u128_unsuffixed(number.unsigned_abs());
    if number < 0 { quote!(-#digits) } else { quote!(#digits) }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    fn refusal(input: &syn::DeriveInput) -> String {
        crate::expand::expand(input)
            .map_or_else(|error| error.to_string(), |tokens| panic!("accepted: {tokens}"))
    }

    #[test]
    fn mistakes_in_unions_are_refused() {
        let without_case = refusal(&parse_quote! {
            #[dds(extensibility = "final")]
            enum Either { A(u8), #[dds(case = 2)] B(u16) }
        });
        assert!(without_case.starts_with("missing discriminator"), "{without_case}");
        let twice = refusal(&parse_quote! {
            #[dds(extensibility = "final")]
            enum Either { #[dds(case = 1)] A(u8), #[dds(case = 2, case = 1)] B(u16) }
        });
        assert_eq!(twice, "duplicate case 1");
        let defaults = refusal(&parse_quote! {
            #[dds(extensibility = "final")]
            enum Either { #[dds(default)] A(u8), #[dds(default)] B }
        });
        assert_eq!(defaults, "only one variant can be the default");
        let two = refusal(&parse_quote! {
            #[dds(extensibility = "final")]
            enum Either { #[dds(case = 1)] A(u8, u8) }
        });
        assert_eq!(two, "a union variant must have one unnamed field or none");
        let key = refusal(&parse_quote! {
            #[dds(extensibility = "final")]
            enum Either { #[dds(case = 1)] A(#[dds(key)] u8) }
        });
        assert_eq!(key, "a union member cannot have a key or an id");
        let undecided = refusal(&parse_quote! { enum Either { #[dds(case = 1)] A(u8) } });
        assert!(undecided.starts_with("missing extensibility"), "{undecided}");
        let discriminator = refusal(&parse_quote! {
            #[dds(extensibility = "final", discriminator = "f32")]
            enum Either { #[dds(case = 1)] A(u8) }
        });
        assert_eq!(discriminator, "the discriminator of a union must be an integer type, such as \"i32\"");
    }

    #[test]
    fn mistakes_in_enumerations_are_refused() {
        assert_eq!(
            refusal(&parse_quote!(
                enum Nothing {}
            )),
            "an enum needs at least one variant"
        );
        let case = refusal(&parse_quote! { enum Color { #[dds(case = 1)] Red } });
        assert_eq!(case, "enumerators take their values from Rust: write `Red = N`");
        let wide = refusal(&parse_quote! { #[dds(bit_bound = 33)] enum Color { Red } });
        assert_eq!(wide, "bit_bound must be between 1 and 32");
    }
}
