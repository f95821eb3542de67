//! Code generation for the keys of structs.

use proc_macro2::TokenStream;
use quote::quote;

use crate::attributes::Extensibility;
use crate::expand::{Delimited, Member};
use crate::runs::{Runs, Size};

/// Generates the items of `CdrValue` that differ for a struct with key members: only those belong to the key.
pub(crate) fn of_keyed(
    members: &[Member<'_>],
    cdr: &TokenStream,
    extensibility: Extensibility,
) -> TokenStream {
    items(members, cdr, extensibility, &quote!(false), &Whole::default())
}

/// Generates the same for a struct without key members: the keys of all its members belong to the key. Nothing if it
/// is obvious that these are the whole value.
pub(crate) fn of_keyless(
    members: &[Member<'_>],
    cdr: &TokenStream,
    extensibility: Extensibility,
) -> TokenStream {
    let is_sorted = members.is_sorted_by_key(|member| member.id);
    if is_sorted && members.iter().all(|member| member.size >= Size::Checked) {
        return TokenStream::new();
    }
    let members: Vec<_> = members.iter().map(|member| Member { is_key: true, ..member.clone() }).collect();
    let codecs = members.iter().map(|member| &member.codec);
    let is_whole = quote!(#is_sorted #(&& #codecs::KEY_IS_WHOLE)*);
    items(&members, cdr, extensibility, &is_whole, &Whole::new(cdr))
}

/// The code that handles the whole value if that is the key. Then the order of the members is that of their ids.
#[derive(Default)]
struct Whole {
    end_offset: TokenStream,
    encode: TokenStream,
    decode: TokenStream,
    copy: TokenStream,
}

impl Whole {
    fn new(cdr: &TokenStream) -> Self {
        let if_whole = |call: &TokenStream| {
            quote! {
                if <Self as #cdr::CdrValue>::KEY_IS_WHOLE {
                    return #call;
                }
            }
        };
        Self {
            end_offset: if_whole(&quote!(#cdr::CdrValue::end_offset(self, offset, encoding))),
            encode: if_whole(&quote!(#cdr::CdrValue::encode(self, writer))),
            decode: if_whole(&quote!(#cdr::CdrValue::decode_into(self, reader))),
            copy: if_whole(&quote!(<Self as #cdr::CdrValue>::copy(reader, writer))),
        }
    }
}

fn items(
    members: &[Member<'_>],
    cdr: &TokenStream,
    extensibility: Extensibility,
    is_whole: &TokenStream,
    whole: &Whole,
) -> TokenStream {
    let (idents, codecs): (Vec<_>, Vec<_>) =
        members.iter().filter(|member| member.is_key).map(|member| (member.ident, &member.codec)).unzip();
    let delimited = Delimited::new(extensibility);
    let (up_to_last, rest) = at_last_key(members);
    let (steps, skip_rest) = (up_to_last.iter().map(copy_key_step), delimited.skip_rest(rest));
    let copy = delimited.around_copy(&quote!(#(#steps)* #skip_rest));
    let Delimited { layout, offset, open_writer, close_writer, .. } = &delimited;
    let keys: Vec<_> = members.iter().filter(|member| member.is_key).collect();
    let encode = Runs { cdr, layout: quote!(KEY_LAYOUT) }.encode(&keys, &quote!(encode_as_key));
    let decode = delimited.around_read(&quote!(#(#codecs::decode_as_key(&mut self.#idents, reader)?;)*));
    let by_id = KeysById::new(members, cdr, &delimited, &skip_rest);
    let KeysById {
        layout: layout_by_id,
        end_offset,
        encode: encode_by_id,
        decode: decode_by_id,
        copy: copy_by_id,
    } = &by_id;
    let Whole { end_offset: whole_end_offset, encode: encode_whole, decode: decode_whole, copy: copy_whole } =
        whole;
    quote! {
        const KEY_IS_WHOLE: bool = #is_whole;
        const KEY_LAYOUT: #cdr::Layout =
            #cdr::Layout::EMPTY #(.then(#codecs::KEY_LAYOUT))* #layout #layout_by_id;

        #[inline]
        fn end_offset_as_key(&self, offset: usize, encoding: #cdr::Encoding) -> usize {
            #whole_end_offset
            #end_offset
            #offset
            #(let offset = #codecs::end_offset_as_key(&self.#idents, offset, encoding);)*
            offset
        }

        #[inline]
        fn encode_as_key(&self, writer: &mut #cdr::CdrWriter<'_>) -> #cdr::Result {
            #encode_whole
            #encode_by_id
            #open_writer
            #encode
            #close_writer
            ::core::result::Result::Ok(())
        }

        #[inline]
        fn decode_as_key(&mut self, reader: &mut #cdr::CdrReader<'_>) -> #cdr::Result {
            #decode_whole
            #decode_by_id
            #decode
            ::core::result::Result::Ok(())
        }

        #[inline]
        fn decode_new_as_key(reader: &mut #cdr::CdrReader<'_>) -> #cdr::Result<Self> {
            let mut value = <Self as ::core::default::Default>::default();
            #cdr::CdrValue::decode_as_key(&mut value, reader)?;
            ::core::result::Result::Ok(value)
        }

        #[inline]
        fn copy_as_key(reader: &mut #cdr::CdrReader<'_>, writer: &mut #cdr::CdrWriter<'_>) -> #cdr::Result {
            #copy_whole
            #copy_by_id
            #copy
            ::core::result::Result::Ok(())
        }
    }
}

/// Generates `DdsType::copy_key`: like `copy_as_key`, but stops at the last key member.
pub(crate) fn copy_key(
    members: &[Member<'_>],
    cdr: &TokenStream,
    extensibility: Extensibility,
) -> TokenStream {
    let steps = at_last_key(members).0.iter().map(copy_key_step);
    let delimited = Delimited::new(extensibility);
    let copy = delimited.around_copy(&quote!(#(#steps)*));
    let copy_by_id = KeysById::new(members, cdr, &delimited, &TokenStream::new()).copy;
    quote! {
        #[inline]
        fn copy_key(reader: &mut #cdr::CdrReader<'_>, writer: &mut #cdr::CdrWriter<'_>) -> #cdr::Result {
            #copy_by_id
            #copy
            ::core::result::Result::Ok(())
        }
    }
}

/// The code for keys in the order of member ids; empty if that is the order of declaration.
#[derive(Default)]
struct KeysById {
    layout: TokenStream,
    end_offset: TokenStream,
    encode: TokenStream,
    decode: TokenStream,
    copy: TokenStream,
}

impl KeysById {
    /// `skip_rest`: passes over the members behind the last key member.
    fn new(
        members: &[Member<'_>],
        cdr: &TokenStream,
        delimited: &Delimited,
        skip_rest: &TokenStream,
    ) -> Self {
        let mut keys: Vec<_> = members.iter().filter(|member| member.is_key).collect();
        if keys.is_sorted_by_key(|member| member.id) {
            return Self::default();
        }
        keys.sort_by_key(|member| member.id);
        let (idents, codecs): (Vec<_>, Vec<_>) =
            keys.iter().map(|member| (member.ident, &member.codec)).unzip();
        let steps = at_last_key(members).0.iter().map(|Member { ident, codec, is_key, .. }| {
            if *is_key {
                quote!(#codec::decode_into(&mut key.#ident, reader)?;)
            } else {
                quote!(#codec::skip(reader)?;)
            }
        });
        let read = delimited.around_read(&quote!(#(#steps)* #skip_rest));
        Self {
            layout: quote!(.or_in_xcdr2(#cdr::Layout::EMPTY #(.then(#codecs::KEY_LAYOUT))*)),
            end_offset: quote! {
                if encoding.orders_keys_by_id() {
                    #(let offset = #codecs::end_offset_as_key(&self.#idents, offset, encoding);)*
                    return offset;
                }
            },
            encode: quote! {
                if writer.encoding().orders_keys_by_id() {
                    #(#codecs::encode_as_key(&self.#idents, writer)?;)*
                    return ::core::result::Result::Ok(());
                }
            },
            decode: quote! {
                if reader.encoding().orders_keys_by_id() {
                    #(#codecs::decode_as_key(&mut self.#idents, reader)?;)*
                    return ::core::result::Result::Ok(());
                }
            },
            copy: quote! {
                if writer.encoding().orders_keys_by_id() {
                    let mut key = <Self as ::core::default::Default>::default();
                    #read
                    return #cdr::CdrValue::encode_as_key(&key, writer);
                }
            },
        }
    }
}

/// Splits the members behind the last key member.
fn at_last_key<'a, 'b>(members: &'b [Member<'a>]) -> (&'b [Member<'a>], &'b [Member<'a>]) {
    members.split_at(members.iter().rposition(|member| member.is_key).map_or(0, |last| last + 1))
}

fn copy_key_step(member: &Member<'_>) -> TokenStream {
    let codec = &member.codec;
    if member.is_key { quote!(#codec::copy_as_key(reader, writer)?;) } else { quote!(#codec::skip(reader)?;) }
}
