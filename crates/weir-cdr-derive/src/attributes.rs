//! Parses `#[dds(..)]` on structs, enums, their fields and variants.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Attribute, DeriveInput, Error, Field, Ident, LitInt, LitStr, Path, Result, Token, Variant};

/// The attributes of a struct.
pub(crate) struct StructAttributes {
    pub(crate) extensibility: Extensibility,
    /// The type name announced to peers.
    pub(crate) name: String,
    /// The path of weir-cdr, if given.
    pub(crate) crate_path: Option<Path>,
}

/// The supported extensibility kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extensibility {
    Final,
    Appendable,
}

/// The attributes of a field.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldAttributes {
    pub(crate) is_key: bool,
    pub(crate) max_len: Option<u32>,
    /// The member id; if absent, one more than that of the previous member.
    pub(crate) id: Option<u32>,
}

/// The attributes of an enum without fields.
pub(crate) struct EnumerationAttributes {
    /// The integer type on the wire.
    pub(crate) repr: Ident,
    pub(crate) crate_path: Option<Path>,
}

/// The attributes of an enum with fields.
pub(crate) struct UnionAttributes {
    pub(crate) extensibility: Extensibility,
    /// The integer type on the wire.
    pub(crate) discriminator: Ident,
    pub(crate) crate_path: Option<Path>,
}

/// The attributes of a union variant.
pub(crate) struct VariantAttributes {
    pub(crate) cases: Vec<i128>,
    pub(crate) is_default: bool,
}

impl EnumerationAttributes {
    pub(crate) fn parse(input: &DeriveInput) -> Result<Self> {
        let (mut repr, mut crate_path) = (None, None);
        each_item(&input.attrs, |name, item| match name {
            "bit_bound" => set_once(&mut repr, item, parse_bit_bound),
            "crate" => set_once(&mut crate_path, item, parse_crate),
            _ => Err(item.error("unknown attribute: enumerations take bit_bound, crate")),
        })?;
        Ok(Self { repr: repr.unwrap_or_else(|| Ident::new("i32", Span::call_site())), crate_path })
    }
}

impl UnionAttributes {
    pub(crate) fn parse(input: &DeriveInput) -> Result<Self> {
        let (mut extensibility, mut discriminator, mut crate_path) = (None, None, None);
        each_item(&input.attrs, |name, item| match name {
            "extensibility" => set_once(&mut extensibility, item, parse_extensibility),
            "discriminator" => set_once(&mut discriminator, item, parse_discriminator),
            "crate" => set_once(&mut crate_path, item, parse_crate),
            _ => Err(item.error("unknown attribute: unions take extensibility, discriminator, crate")),
        })?;
        Ok(Self {
            extensibility: extensibility.ok_or_else(|| undecided(input))?,
            discriminator: discriminator.unwrap_or_else(|| Ident::new("i32", Span::call_site())),
            crate_path,
        })
    }
}

impl VariantAttributes {
    pub(crate) fn parse(variant: &Variant) -> Result<Self> {
        let (mut cases, mut default) = (Vec::new(), None);
        each_item(&variant.attrs, |name, item| match name {
            "case" => parse_case(item).map(|case| cases.push(case)),
            "default" => set_once(&mut default, item, |_| Ok(())),
            _ => Err(item.error("unknown attribute: union variants take case, default")),
        })?;
        Ok(Self { cases, is_default: default.is_some() })
    }

    /// Refuses attributes.
    pub(crate) fn parse_none(variant: &Variant) -> Result<()> {
        each_item(&variant.attrs, |_, item| {
            Err(item.error("enumerators take their values from Rust: write `Red = N`"))
        })
    }
}

impl StructAttributes {
    pub(crate) fn parse(input: &DeriveInput) -> Result<Self> {
        let (mut extensibility, mut type_name, mut crate_path) = (None, None, None);
        each_item(&input.attrs, |name, item| match name {
            "extensibility" => set_once(&mut extensibility, item, parse_extensibility),
            "name" => set_once(&mut type_name, item, parse_name),
            "crate" => set_once(&mut crate_path, item, parse_crate),
            _ => Err(item.error("unknown attribute: structs take extensibility, name, crate")),
        })?;
        Ok(Self {
            extensibility: extensibility.ok_or_else(|| undecided(input))?,
            name: type_name.unwrap_or_else(|| unraw(&input.ident)),
            crate_path,
        })
    }
}

impl FieldAttributes {
    pub(crate) fn parse(field: &Field) -> Result<Self> {
        let (mut key, mut max_len, mut id) = (None, None, None);
        each_item(&field.attrs, |name, item| match name {
            "key" => set_once(&mut key, item, |_| Ok(())),
            "max_len" => set_once(&mut max_len, item, parse_max_len),
            "id" => set_once(&mut id, item, parse_id),
            _ => Err(item.error("unknown attribute: fields take key, max_len, id")),
        })?;
        Ok(Self { is_key: key.is_some(), max_len, id })
    }
}

/// Calls a function with the name of each item of the `#[dds(...)]` lists, and the item.
fn each_item(
    attributes: &[Attribute],
    mut each: impl FnMut(&str, &ParseNestedMeta<'_>) -> Result<()>,
) -> Result<()> {
    let mut lists = attributes.iter().filter(|attribute| attribute.path().is_ident("dds"));
    lists.try_for_each(|list| {
        list.parse_nested_meta(|item| {
            let name = item.path.get_ident().map(Ident::to_string).unwrap_or_default();
            each(&name, &item)
        })
    })
}

fn set_once<T>(
    slot: &mut Option<T>,
    item: &ParseNestedMeta<'_>,
    parse: impl FnOnce(&ParseNestedMeta<'_>) -> Result<T>,
) -> Result<()> {
    match slot.replace(parse(item)?) {
        None => Ok(()),
        Some(_) => Err(Error::new(item.path.span(), "duplicate attribute")),
    }
}

fn parse_extensibility(item: &ParseNestedMeta<'_>) -> Result<Extensibility> {
    let literal: LitStr = item.value()?.parse()?;
    match literal.value().as_str() {
        "final" => Ok(Extensibility::Final),
        "appendable" => Ok(Extensibility::Appendable),
        "mutable" => Err(Error::new(literal.span(), "mutable types are not supported yet")),
        _ => Err(Error::new(literal.span(), "extensibility must be \"final\" or \"appendable\"")),
    }
}

fn undecided(input: &DeriveInput) -> Error {
    Error::new(
        input.ident.span(),
        "missing extensibility: add #[dds(extensibility = \"final\")] or #[dds(extensibility = \
         \"appendable\")]; there is no default because vendors disagree on it",
    )
}

fn parse_crate(item: &ParseNestedMeta<'_>) -> Result<Path> {
    item.value()?.parse::<LitStr>()?.parse()
}

/// The smallest integer type with that many bits (DDS-XTypes 1.3, 7.4.1.1.3).
fn parse_bit_bound(item: &ParseNestedMeta<'_>) -> Result<Ident> {
    let literal: LitInt = item.value()?.parse()?;
    let repr = match literal.base10_parse()? {
        1_u32..=8 => "i8",
        9..=16 => "i16",
        17..=32 => "i32",
        _ => return Err(Error::new(literal.span(), "bit_bound must be between 1 and 32")),
    };
    Ok(Ident::new(repr, Span::call_site()))
}

fn parse_discriminator(item: &ParseNestedMeta<'_>) -> Result<Ident> {
    let literal: LitStr = item.value()?.parse()?;
    match literal.value().as_str() {
        "u8" | "i8" | "u16" | "i16" | "u32" | "i32" | "u64" | "i64" => literal.parse(),
        _ => {
            let text = "the discriminator of a union must be an integer type, such as \"i32\"";
            Err(Error::new(literal.span(), text))
        }
    }
}

fn parse_case(item: &ParseNestedMeta<'_>) -> Result<i128> {
    let value = item.value()?;
    let is_negative = value.parse::<Option<Token![-]>>()?.is_some();
    let case: i128 = value.parse::<LitInt>()?.base10_parse()?;
    Ok(if is_negative { -case } else { case })
}

fn parse_id(item: &ParseNestedMeta<'_>) -> Result<u32> {
    let literal: LitInt = item.value()?.parse()?;
    match literal.base10_parse() {
        Ok(id @ 0..=MEMBER_ID_MAX) => Ok(id),
        _ => Err(Error::new(literal.span(), "a member id must be between 0 and 268435454")),
    }
}

/// The largest member id: they have 28 bits, and the last one is reserved (DDS-XTypes 1.3,
/// 7.2.2.4.4.4).
pub(crate) const MEMBER_ID_MAX: u32 = 0x0fff_fffe;

fn parse_name(item: &ParseNestedMeta<'_>) -> Result<String> {
    let literal: LitStr = item.value()?.parse()?;
    match literal.value() {
        name if name.is_empty() => Err(Error::new(literal.span(), "the type name must not be empty")),
        name if name.contains('\0') => Err(Error::new(literal.span(), "the type name must not contain NUL")),
        name => Ok(name),
    }
}

fn parse_max_len(item: &ParseNestedMeta<'_>) -> Result<u32> {
    let literal: LitInt = item.value()?.parse()?;
    match literal.base10_parse() {
        Ok(max_len @ 1..=MAX_LEN_MAX) => Ok(max_len),
        _ => Err(Error::new(literal.span(), "max_len must be between 1 and 4294967294")),
    }
}

/// One less than the maximum length, because the length of a string counts its NUL.
const MAX_LEN_MAX: u32 = u32::MAX - 1;

/// Returns the name of an identifier without `r#`.
pub(crate) fn unraw(ident: &Ident) -> String {
    use syn::ext::IdentExt;
    ident.unraw().to_string()
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn refusal(input: &DeriveInput) -> String {
        StructAttributes::parse(input).map_or_else(|error| error.to_string(), |_| "accepted".to_owned())
    }

    fn field(field: &Field) -> std::result::Result<FieldAttributes, String> {
        FieldAttributes::parse(field).map_err(|error| error.to_string())
    }

    #[test]
    fn a_type_must_say_how_it_may_evolve() {
        let refused = refusal(&parse_quote!(
            struct Undecided {
                x: i32,
            }
        ));
        assert!(
            refused.starts_with("missing extensibility: add #[dds(extensibility = \"final\")] or"),
            "{refused}"
        );
        let refused = refusal(&parse_quote!(
            #[dds(name = "Named")]
            struct Undecided {
                x: i32,
            }
        ));
        assert!(refused.starts_with("missing extensibility"), "{refused}");
    }

    #[test]
    fn mutable_and_unknown_extensibilities_are_refused() {
        let mutable = refusal(&parse_quote!(
            #[dds(extensibility = "mutable")]
            struct M {
                x: i32,
            }
        ));
        assert_eq!(mutable, "mutable types are not supported yet");
        let unknown = refusal(&parse_quote!(
            #[dds(extensibility = "open")]
            struct M {
                x: i32,
            }
        ));
        assert_eq!(unknown, "extensibility must be \"final\" or \"appendable\"");
    }

    #[test]
    fn struct_attributes_are_read_from_one_or_several_lists() {
        let input = parse_quote! {
            #[dds(extensibility = "appendable", name = "ShapeType")]
            #[derive(Debug)]
            #[dds(crate = "weir_dds::cdr")]
            struct Shape { x: i32 }
        };
        let attributes = StructAttributes::parse(&input).unwrap();
        assert_eq!(attributes.extensibility, Extensibility::Appendable);
        assert_eq!(attributes.name, "ShapeType");
        let crate_path = attributes.crate_path.map(|path| quote::quote!(#path).to_string());
        assert_eq!(crate_path.as_deref(), Some("weir_dds :: cdr"));

        let plain = parse_quote!(
            #[dds(extensibility = "final")]
            struct Plain {
                x: i32,
            }
        );
        let attributes = StructAttributes::parse(&plain).unwrap();
        assert_eq!((attributes.extensibility, attributes.name.as_str()), (Extensibility::Final, "Plain"));
        assert!(attributes.crate_path.is_none());
    }

    #[test]
    fn mistakes_in_struct_attributes_are_refused() {
        let unknown = refusal(&parse_quote!(
            #[dds(key)]
            struct S {
                x: i32,
            }
        ));
        assert_eq!(unknown, "unknown attribute: structs take extensibility, name, crate");
        let twice = refusal(&parse_quote!(
            #[dds(name = "A", name = "B")]
            struct S {
                x: i32,
            }
        ));
        assert_eq!(twice, "duplicate attribute");
        let empty = refusal(&parse_quote!(
            #[dds(name = "")]
            struct S {
                x: i32,
            }
        ));
        assert_eq!(empty, "the type name must not be empty");
        let nul = refusal(&parse_quote!(
            #[dds(name = "a\0")]
            struct S {
                x: i32,
            }
        ));
        assert_eq!(nul, "the type name must not contain NUL");
    }

    #[test]
    fn field_attributes_are_read() {
        let none = FieldAttributes::default();
        assert_eq!(field(&parse_quote!(x: i32)), Ok(none));
        let both = FieldAttributes { is_key: true, max_len: Some(128), id: None };
        assert_eq!(field(&parse_quote!(#[dds(key, max_len = 128)] color: String)), Ok(both));
    }

    #[test]
    fn mistakes_in_field_attributes_are_refused() {
        let refused = |input: &Field| field(input).unwrap_err();
        let unknown = "unknown attribute: fields take key, max_len, id";
        assert_eq!(refused(&parse_quote!(#[dds(keyed)] x: i32)), unknown);
        assert_eq!(refused(&parse_quote!(#[dds(key, key)] x: i32)), "duplicate attribute");
        let range = "max_len must be between 1 and 4294967294";
        assert_eq!(refused(&parse_quote!(#[dds(max_len = 0)] x: String)), range);
        assert_eq!(refused(&parse_quote!(#[dds(max_len = 4294967295)] x: String)), range);
        assert_eq!(
            field(&parse_quote!(#[dds(max_len = 4294967294)] x: String)).unwrap().max_len,
            Some(4_294_967_294)
        );
    }
}
