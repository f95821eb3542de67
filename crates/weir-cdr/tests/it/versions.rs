//! Samples of writers with an older version of an appendable type, which lack its last members.

use std::collections::BTreeMap;

use weir_cdr::{DdsType, Encoding, Endianness};

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
