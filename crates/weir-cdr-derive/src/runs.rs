//! Runs: consecutive members that are written or read at constant offsets from each other.
//!
//! The macro sees only the names of types. It groups all consecutive members that may have a known
//! size, and the generated code checks at compile time whether they have (`Run`). If not, those
//! with the names of primitive types are grouped again, and the others are handled one by one.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Ident, Type};

use crate::expand::Member;

/// How likely all values of a type have the same size, judged by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Size {
    /// A string or a collection.
    Variable,
    /// A type of which only the name is known.
    Unknown,
    /// A boolean, or an array of booleans: not all bytes are valid, so reading may fail before the
    /// data end.
    Checked,
    /// A number, or an array of numbers.
    Fixed,
}

impl Size {
    pub(crate) fn of(ty: &Type) -> Self {
        match ty {
            Type::Array(array) => Self::of(&array.elem),
            // Types passed through a user's macro are in a group.
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

/// The parameters of the code for a run.
pub(crate) struct Runs<'a> {
    pub(crate) cdr: &'a TokenStream,
    /// `LAYOUT` or `KEY_LAYOUT` of the codecs.
    pub(crate) layout: TokenStream,
}

/// Splits members into runs and others. A run has at least two consecutive members of at least this
/// likelihood.
fn split<'a, 'b>(
    members: &'b [&'a Member<'a>],
    at_least: Size,
) -> impl Iterator<Item = &'b [&'a Member<'a>]> {
    members.chunk_by(move |a, b| a.size.min(b.size) >= at_least)
}

impl Runs<'_> {
    /// Generates code that writes the members with `encode`.
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

    /// Generates code that reads the members over those of `self`.
    pub(crate) fn decode_into(&self, members: &[&Member<'_>]) -> TokenStream {
        self.read_at_least(
            members,
            Size::Unknown,
            &|Member { ident, codec, .. }, reader| quote!(#codec::decode_into(&mut self.#ident, #reader)?;),
        )
    }

    /// Generates code that reads the members into variables named by [`variable`].
    pub(crate) fn decode(&self, members: &[&Member<'_>]) -> TokenStream {
        self.read_at_least(members, Size::Unknown, &|member, reader| {
            let (variable, codec) = (variable(member.ident), &member.codec);
            quote!(#variable = #codec::decode(#reader)?;)
        })
    }

    /// Generates code that reads members, each with the code that `read` returns for it and a
    /// reader.
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

    /// The same for a value that may end early because its sender has fewer members: the others
    /// take their defaults.
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

    /// Generates the error for data that end inside these members.
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

    /// Returns the run of these members; `None` if they are too few, or certainly not a run.
    fn run(&self, members: &[&Member<'_>]) -> Option<TokenStream> {
        let Self { cdr, layout } = self;
        if members.len() < 2 || members.iter().any(|member| member.size == Size::Variable) {
            return None;
        }
        let (_, codecs) = idents_and_codecs(members);
        Some(quote!(const { #cdr::Run::of(#cdr::Layout::EMPTY #(.then(#codecs::#layout))*) }))
    }
}

/// Returns whether some of these members may form a run although all of them do not.
fn needs_finer(members: &[&Member<'_>], at_least: Size) -> bool {
    at_least == Size::Unknown && members.iter().any(|member| member.size == Size::Unknown)
}

/// Returns the name of a member's variable.
pub(crate) fn variable(ident: &Ident) -> Ident {
    format_ident!("member_{}", ident)
}

fn idents_and_codecs<'a>(members: &[&'a Member<'a>]) -> (Vec<&'a Ident>, Vec<&'a TokenStream>) {
    members.iter().map(|member| (member.ident, &member.codec)).unzip()
}
