//! What `#[dds(..)]` on a struct and on its fields says.

use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Attribute, DeriveInput, Error, Field, LitInt, LitStr, Path, Result};

/// The attributes of a struct.
pub(crate) struct StructAttributes {
    pub(crate) extensibility: Extensibility,
    /// The type name for peers.
    pub(crate) name: String,
    /// The path of weir-cdr if given.
    pub(crate) crate_path: Option<Path>,
}

/// The extensibility kinds that are supported.
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
}

impl StructAttributes {
    pub(crate) fn parse(input: &DeriveInput) -> Result<Self> {
        let (mut extensibility, mut name, mut crate_path) = (None, None, None);
        each_item(&input.attrs, |item| {
            if item.path.is_ident("extensibility") {
                set_once(&mut extensibility, &item, parse_extensibility(&item)?)
            } else if item.path.is_ident("name") {
                set_once(&mut name, &item, parse_name(&item)?)
            } else if item.path.is_ident("crate") {
                set_once(&mut crate_path, &item, item.value()?.parse::<LitStr>()?.parse()?)
            } else {
                Err(item.error("unknown attribute, a struct has: extensibility, name, crate"))
            }
        })?;
        let missing = || {
            Error::new(
                input.ident.span(),
                "say how this type may evolve: #[dds(extensibility = \"final\")] or #[dds(extensibility = \
                 \"appendable\")]; there is no default because vendors disagree on it",
            )
        };
        Ok(Self {
            extensibility: extensibility.ok_or_else(missing)?,
            name: name.unwrap_or_else(|| unraw(&input.ident)),
            crate_path,
        })
    }
}

impl FieldAttributes {
    pub(crate) fn parse(field: &Field) -> Result<Self> {
        let (mut key, mut max_len) = (None, None);
        each_item(&field.attrs, |item| {
            if item.path.is_ident("key") {
                set_once(&mut key, &item, ())
            } else if item.path.is_ident("max_len") {
                set_once(&mut max_len, &item, parse_max_len(&item)?)
            } else {
                Err(item.error("unknown attribute, a field has: key, max_len"))
            }
        })?;
        Ok(Self { is_key: key.is_some(), max_len })
    }
}

fn each_item(
    attributes: &[Attribute],
    mut item: impl FnMut(ParseNestedMeta<'_>) -> Result<()>,
) -> Result<()> {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("dds"))
        .try_for_each(|attribute| attribute.parse_nested_meta(&mut item))
}

fn set_once<T>(slot: &mut Option<T>, item: &ParseNestedMeta<'_>, value: T) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::new(item.path.span(), "this attribute is given twice")),
    }
}

fn parse_extensibility(item: &ParseNestedMeta<'_>) -> Result<Extensibility> {
    let literal: LitStr = item.value()?.parse()?;
    match literal.value().as_str() {
        "final" => Ok(Extensibility::Final),
        "appendable" => Ok(Extensibility::Appendable),
        "mutable" => Err(Error::new(literal.span(), "mutable types are not supported yet")),
        _ => Err(Error::new(literal.span(), "extensibility is \"final\" or \"appendable\"")),
    }
}

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

/// One less than a length can express, because the length of a string counts its NUL.
const MAX_LEN_MAX: u32 = u32::MAX - 1;

/// The name of an identifier without `r#`.
fn unraw(ident: &syn::Ident) -> String {
    use syn::ext::IdentExt;
    ident.unraw().to_string()
}
