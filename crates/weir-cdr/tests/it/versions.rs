//! Samples of writers with an older version of an appendable type, which lack its last members.

use std::collections::BTreeMap;

use weir_cdr::{CdrReader, CdrWriter, DdsType, Encoding, Endianness, Result};

use crate::types::{decode, encode};

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
struct ItemOld {
    a: u8,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
struct ItemNew {
    a: u8,
    b: u64,
    c: [u64; 4],
}

fn old_items() -> Vec<ItemOld> {
    vec![ItemOld { a: 1 }, ItemOld { a: 2 }, ItemOld { a: 3 }]
}

fn new_items() -> Vec<ItemNew> {
    old_items().into_iter().map(|ItemOld { a }| ItemNew { a, ..ItemNew::default() }).collect()
}

#[test]
fn elements_of_collections_may_lack_members() {
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "appendable")]
    struct OuterOld {
        items: Vec<ItemOld>,
        by_number: BTreeMap<u8, ItemOld>,
        #[dds(max_len = 3)]
        few: Vec<ItemOld>,
    }
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "appendable")]
    struct OuterNew {
        items: Vec<ItemNew>,
        by_number: BTreeMap<u8, ItemNew>,
        #[dds(max_len = 3)]
        few: Vec<ItemNew>,
    }
    let old = OuterOld { items: old_items(), by_number: (5..).zip(old_items()).collect(), few: old_items() };
    let new = OuterNew { items: new_items(), by_number: (5..).zip(new_items()).collect(), few: new_items() };
    for endianness in [Endianness::Little, Endianness::Big] {
        let bytes = encode(&old, endianness, Encoding::Xcdr2).unwrap();
        assert_eq!(decode::<OuterNew>(&bytes, endianness, Encoding::Xcdr2).as_ref(), Ok(&new));
    }
}

/// The key of a sample in this form, from the sample of a writer with another version of the type.
fn copied_key<T: DdsType>(sample: &impl DdsType, encoding: Encoding, form: Encoding) -> Result<Vec<u8>> {
    let bytes = encode(sample, Endianness::Little, encoding)?;
    let mut key = [0xee; 64];
    let mut writer = CdrWriter::new(&mut key, Endianness::Big, form);
    T::copy_key(&mut CdrReader::new(&bytes, Endianness::Little, encoding), &mut writer)?;
    Ok(writer.written().to_vec())
}

#[test]
fn the_key_is_found_without_the_members_behind_it() {
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "appendable")]
    struct PlaceOld {
        #[dds(key)]
        room: u8,
    }
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "final")]
    struct Old {
        #[dds(key)]
        place: PlaceOld,
        #[dds(key)]
        number: u8,
    }
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "appendable")]
    struct PlaceNew {
        #[dds(key)]
        room: u8,
        height: f32,
        name: String,
    }
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "final")]
    struct New {
        #[dds(key)]
        place: PlaceNew,
        #[dds(key)]
        number: u8,
    }
    let old = Old { place: PlaceOld { room: 3 }, number: 7 };
    assert_eq!(copied_key::<New>(&old, Encoding::Xcdr2, Encoding::PlainXcdr2).unwrap(), [3, 7]);
    assert_eq!(copied_key::<New>(&old, Encoding::Xcdr2, Encoding::Xcdr2).unwrap(), [0, 0, 0, 1, 3, 7]);
    let new = New { place: PlaceNew { room: 3, height: 1.5, name: "attic".to_owned() }, number: 7 };
    for encoding in [Encoding::Xcdr1, Encoding::Xcdr2] {
        assert_eq!(copied_key::<New>(&new, encoding, Encoding::PlainXcdr2).unwrap(), [3, 7]);
    }
}

#[test]
fn a_key_in_the_order_of_ids_is_found_without_the_members_behind_it() {
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "appendable")]
    struct Old {
        #[dds(key, id = 2)]
        late: u8,
        #[dds(key, id = 1)]
        early: u8,
    }
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "appendable")]
    struct New {
        #[dds(key, id = 2)]
        late: u8,
        #[dds(key, id = 1)]
        early: u8,
        #[dds(id = 3)]
        text: String,
    }
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "final")]
    struct AroundOld {
        #[dds(key)]
        inner: Old,
        #[dds(key)]
        number: u8,
    }
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "final")]
    struct AroundNew {
        #[dds(key)]
        inner: New,
        #[dds(key)]
        number: u8,
    }
    let old = Old { late: 2, early: 1 };
    assert_eq!(copied_key::<New>(&old, Encoding::Xcdr2, Encoding::PlainXcdr2).unwrap(), [1, 2]);
    let old = AroundOld { inner: old, number: 7 };
    assert_eq!(copied_key::<AroundNew>(&old, Encoding::Xcdr2, Encoding::PlainXcdr2).unwrap(), [1, 2, 7]);
    let inner = New { late: 2, early: 1, text: "text".to_owned() };
    let new = AroundNew { inner, number: 7 };
    for encoding in [Encoding::Xcdr1, Encoding::Xcdr2] {
        assert_eq!(copied_key::<AroundNew>(&new, encoding, Encoding::PlainXcdr2).unwrap(), [1, 2, 7]);
    }
}
