//! Members in a row that are written, or read, at constant offsets from each other: runs.
//!
//! The macro sees only the names of types, so it takes all members in a row that may have a known size together, and asks
//! at compile time whether they do (`Run`). Where they do not, those among them that have the names of primitives are
//! taken together again, and the others go one by one.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Ident, Type};

use crate::expand::Member;

/// How likely it is that all values of a type have the same size, as far as its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Size {
    /// A string or a collection.
    Variable,
    /// A type of which only the name is known.
    Unknown,
    /// A boolean, or an array of such: not all octets are values, so reading may fail before the data end.
    Checked,
    /// A number, or an array of numbers.
    Fixed,
}

impl Size {
    pub(crate) fn of(ty: &Type) -> Self {
        match ty {
            Type::Array(array) => Self::of(&array.elem),
            // What a macro of the user was given as a type comes in a group.
            Type::Group(group) => Self::of(&group.elem),
            Type::Paren(paren) => Self::of(&paren.elem),
            Type::Path(path) => path.path.segments.last().map_or(Self::Unknown, |last| named(&last.ident)),
            _ => Self::Unknown,
        }
    }
}

fn named(ident: &Ident) -> Size {
    match ident.to_string().as_str() {
        "u8" | "i8" | "u16" | "i16" | "u32" | "i32" | "u64" | "i64" | "f32" | "f64" => Size::Fixed,
        "bool" => Size::Checked,
        "String" | "Vec" | "BTreeMap" | "Bytes" | "Option" => Size::Variable,
        _ => Size::Unknown,
    }
}

/// What the code for a run depends on.
pub(crate) struct Runs<'a> {
    pub(crate) cdr: &'a TokenStream,
    /// Of the codecs: `LAYOUT` or `KEY_LAYOUT`.
    pub(crate) layout: TokenStream,
}

/// Members in a row, a run or not: those of at least the same likelihood, and at least two.
fn split<'a, 'b>(
    members: &'b [&'a Member<'a>],
    at_least: Size,
) -> impl Iterator<Item = &'b [&'a Member<'a>]> {
    members.chunk_by(move |a, b| a.size.min(b.size) >= at_least)
}

impl Runs<'_> {
    /// Writes the members by `encode`.
    pub(crate) fn encode(&self, members: &[&Member<'_>], encode: &TokenStream) -> TokenStream {
        self.encode_at_least(members, Size::Unknown, encode)
    }

    fn encode_at_least(&self, members: &[&Member<'_>], at_least: Size, encode: &TokenStream) -> TokenStream {
        let steps = split(members, at_least).map(|members| {
            let (idents, codecs) = idents_and_codecs(members);
            let each = quote!(#(#codecs::#encode(&self.#idents, writer)?;)*);
            let Some(run) = self.run(members) else { return each };
            let otherwise = if needs_finer(members, at_least) {
                self.encode_at_least(members, Size::Checked, encode)
            } else {
                each
            };
            quote! {
                if let ::core::option::Option::Some(mut run) = writer.run(#run)? {
                    #(#codecs::#encode(&self.#idents, &mut run)?;)*
                } else {
                    #otherwise
                }
            }
        });
        steps.collect()
    }

    /// Reads the members over those of `self`.
    pub(crate) fn decode_into(&self, members: &[&Member<'_>]) -> TokenStream {
        self.read_at_least(
            members,
            Size::Unknown,
            &|Member { ident, codec, .. }, reader| quote!(#codec::decode_into(&mut self.#ident, #reader)?;),
        )
    }

    /// Reads the members into variables of the names that [`variable`] gives.
    pub(crate) fn decode(&self, members: &[&Member<'_>]) -> TokenStream {
        self.read_at_least(members, Size::Unknown, &|member, reader| {
            let (variable, codec) = (variable(member.ident), &member.codec);
            quote!(#variable = #codec::decode(#reader)?;)
        })
    }

    /// The code that reads members, each by what `read` gives for it and a reader.
    fn read_at_least(
        &self,
        members: &[&Member<'_>],
        at_least: Size,
        read: &dyn Fn(&Member<'_>, &TokenStream) -> TokenStream,
    ) -> TokenStream {
        let cdr = self.cdr;
        let all = |members: &[&Member<'_>], reader: &TokenStream| -> TokenStream {
            members.iter().map(|member| read(member, reader)).collect()
        };
        let steps = split(members, at_least).map(|members| {
            let Some(run) = self.run(members) else { return all(members, &quote!(reader)) };
            let (short, whole) = (self.short(members), all(members, &quote!(&mut run)));
            let otherwise = if needs_finer(members, at_least) {
                self.read_at_least(members, Size::Checked, read)
            } else {
                all(members, &quote!(reader))
            };
            quote! {
                match reader.run(#run) {
                    #cdr::RunData::Whole(mut run) => { #whole }
                    #cdr::RunData::Short => return ::core::result::Result::Err(#short),
                    #cdr::RunData::Unknown => { #otherwise }
                }
            }
        });
        steps.collect()
    }

    /// The same for a value that ends where its sender has no more members: the others have their defaults.
    pub(crate) fn decode_into_delimited(&self, members: &[&Member<'_>]) -> TokenStream {
        let (cdr, runs) = (self.cdr, split(members, Size::Unknown));
        let steps = runs.map(|members| {
            let (idents, codecs) = idents_and_codecs(members);
            let each = quote! {
                #(if reader.remaining() > 0 {
                    #codecs::decode_into(&mut self.#idents, reader)?;
                } else {
                    let mut missing = <Self as ::core::default::Default>::default();
                    ::core::mem::swap(&mut self.#idents, &mut missing.#idents);
                })*
            };
            let Some(run) = self.run(members) else { return each };
            quote! {
                if let #cdr::RunData::Whole(mut run) = reader.run(#run) {
                    #(#codecs::decode_into(&mut self.#idents, &mut run)?;)*
                } else {
                    #each
                }
            }
        });
        steps.collect()
    }

    /// The error of data that end inside of these members.
    fn short(&self, members: &[&Member<'_>]) -> TokenStream {
        let cdr = self.cdr;
        if members.iter().all(|member| member.size == Size::Fixed) {
            return quote!(#cdr::CdrError::UnexpectedEnd);
        }
        let (_, codecs) = idents_and_codecs(members);
        quote! {
            ::core::clone::Clone::clone(reader).why_short(|reader| {
                #(#codecs::decode(reader)?;)*
                ::core::result::Result::Ok(())
            })
        }
    }

    /// The run of these members; none if they are too few, or surely none.
    fn run(&self, members: &[&Member<'_>]) -> Option<TokenStream> {
        let Self { cdr, layout } = self;
        if members.len() < 2 || members.iter().any(|member| member.size == Size::Variable) {
            return None;
        }
        let (_, codecs) = idents_and_codecs(members);
        Some(quote!(const { #cdr::Run::of(#cdr::Layout::EMPTY #(.then(#codecs::#layout))*) }))
    }
}

/// Whether some of the members of what is no run may be one.
fn needs_finer(members: &[&Member<'_>], at_least: Size) -> bool {
    at_least == Size::Unknown && members.iter().any(|member| member.size == Size::Unknown)
}

/// The name of the variable for a member.
pub(crate) fn variable(ident: &Ident) -> Ident {
    format_ident!("member_{}", ident)
}

fn idents_and_codecs<'a>(members: &[&'a Member<'a>]) -> (Vec<&'a Ident>, Vec<&'a TokenStream>) {
    members.iter().map(|member| (member.ident, &member.codec)).unzip()
}
