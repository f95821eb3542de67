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
            refused.starts_with("say how this type may evolve: #[dds(extensibility = \"final\")] or"),
            "{refused}"
        );
        let refused = refusal(&parse_quote!(
            #[dds(name = "Named")]
            struct Undecided {
                x: i32,
            }
        ));
        assert!(refused.starts_with("say how this type may evolve"), "{refused}");
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
        assert_eq!(unknown, "extensibility is \"final\" or \"appendable\"");
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
        assert_eq!(unknown, "unknown attribute, a struct has: extensibility, name, crate");
        let twice = refusal(&parse_quote!(
            #[dds(name = "A", name = "B")]
            struct S {
                x: i32,
            }
        ));
        assert_eq!(twice, "this attribute is given twice");
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
        let both = FieldAttributes { is_key: true, max_len: Some(128) };
        assert_eq!(field(&parse_quote!(#[dds(key, max_len = 128)] color: String)), Ok(both));
    }

    #[test]
    fn mistakes_in_field_attributes_are_refused() {
        let refused = |input: &Field| field(input).unwrap_err();
        let unknown = "unknown attribute, a field has: key, max_len";
        assert_eq!(refused(&parse_quote!(#[dds(keyed)] x: i32)), unknown);
        assert_eq!(refused(&parse_quote!(#[dds(key, key)] x: i32)), "this attribute is given twice");
        let range = "max_len must be between 1 and 4294967294";
        assert_eq!(refused(&parse_quote!(#[dds(max_len = 0)] x: String)), range);
        assert_eq!(refused(&parse_quote!(#[dds(max_len = 4294967295)] x: String)), range);
        assert_eq!(
            field(&parse_quote!(#[dds(max_len = 4294967294)] x: String)).unwrap().max_len,
            Some(4_294_967_294)
        );
    }
}
