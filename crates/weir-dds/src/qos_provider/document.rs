//! Libraries, profiles and their elements; inheritance and topic filters.

use std::collections::HashMap;

use roxmltree::{Document as Xml, Node, ParsingOptions};
use weir_rtps::qos_match::fnmatch;

use super::error::QosProfileError;
use super::policies::{Draft, Entity, Setter, read_policy};
use super::values::{Place, check_content, similar};

type Result<T = ()> = std::result::Result<T, QosProfileError>;

/// Most elements, attributes and texts of a file.
const NODES_MAX: u32 = 200_000;
/// Longest chain of base profiles.
const BASES_MAX: usize = 32;

/// Building blocks of DDS-XML that are not about QoS.
const OTHER_BLOCKS: [&str; 7] = [
    "types",
    "type_library",
    "domain_library",
    "domain_participant_library",
    "participant_library",
    "application_library",
    "data_library",
];

/// Attributes that only other engines have, by the names in their documentation.
const VENDOR_ATTRIBUTES: &[&str] = &["version", "is_default_qos", "is_default_participant_factory_profile"];

/// All profiles of all files.
#[derive(Debug, Clone, Default)]
pub(super) struct Document {
    profiles: Vec<Profile>,
    by_name: HashMap<String, usize>,
    warnings: Vec<String>,
}

#[derive(Debug, Clone)]
struct Profile {
    /// `LIBRARY::PROFILE`.
    name: String,
    base: Option<Base>,
    elements: Vec<Element>,
}

/// The QoS of one kind of entity.
#[derive(Debug, Clone)]
struct Element {
    entity: Entity,
    filter: Option<String>,
    base: Option<Base>,
    setters: Vec<Setter>,
    place: Place,
}

/// A reference to a profile.
#[derive(Debug, Clone)]
struct Base {
    name: String,
    place: Place,
}

impl Document {
    /// Adds the profiles of a file.
    pub(super) fn add(&mut self, file: &str, text: &str) -> Result {
        // Without a DTD there are no entities to expand.
        let options =
            ParsingOptions { allow_dtd: false, nodes_limit: NODES_MAX, ..ParsingOptions::default() };
        let xml = Xml::parse_with_options(text, options).map_err(|error| {
            let hint = match error {
                roxmltree::Error::DtdDetected => ": remove the DOCTYPE",
                roxmltree::Error::NodesLimitReached => ": split the file",
                _ => "",
            };
            QosProfileError::at(file, error.pos(), format!("{error}{hint}"))
        })?;
        let root = xml.root_element();
        if root.tag_name().name() != "dds" {
            let found = root.tag_name().name();
            let cause = format!("the root element is <{found}>: QoS profiles are in <dds>");
            return Err(Place::of(file, &root).error(cause));
        }
        self.check_content(file, &root, &[])?;
        for node in root.children().filter(Node::is_element) {
            match node.tag_name().name() {
                "qos_library" => self.add_library(file, &node)?,
                name if OTHER_BLOCKS.contains(&name) => {}
                name => {
                    let cause = format!("<dds> has no element <{name}>: profiles are in <qos_library>");
                    return Err(Place::of(file, &node).error(cause));
                }
            }
        }
        Ok(())
    }

    fn add_library(&mut self, file: &str, library: &Node<'_, '_>) -> Result {
        let library_name = name_of(file, library)?;
        self.check_content(file, library, &["name"])?;
        for node in library.children().filter(Node::is_element) {
            let place = Place::of(file, &node);
            let (kind, own_name) = (node.tag_name().name(), name_of(file, &node));
            let is_profile = kind == "qos_profile";
            if !is_profile && Entity::of_element(kind).is_none() {
                let cause = format!("<qos_library> has no element <{kind}>: profiles are <qos_profile>");
                return Err(place.error(cause));
            }
            let name = format!("{library_name}::{}", own_name?);
            let elements = if is_profile {
                self.check_content(file, &node, &["name", "base_name"])?;
                let children = node.children().filter(Node::is_element);
                children.filter_map(|child| self.element(file, library_name, &child).transpose()).collect()
            } else {
                // The QoS of one kind of entity with a name of its own.
                self.element(file, library_name, &node).map(|element| element.into_iter().collect())
            };
            let base = if is_profile { base_of(file, library_name, &node) } else { None };
            let profile = Profile { name: name.clone(), base, elements: elements? };
            if let Some(before) = self.by_name.insert(name, self.profiles.len()) {
                let before = &self.profiles[before];
                return Err(place.error(format!("there is a profile {} already", before.name)));
            }
            self.profiles.push(profile);
        }
        Ok(())
    }

    /// Refuses text between elements, and unknown attributes. Warns of those that only other engines have.
    fn check_content(&mut self, file: &str, node: &Node<'_, '_>, attributes: &[&str]) -> Result {
        let name = node.tag_name().name();
        let is_skipped = |name: &&str| VENDOR_ATTRIBUTES.contains(name) && node.has_attribute(*name);
        for skipped in node.attributes().map(|it| it.name()).filter(is_skipped) {
            let text =
                format!("the attribute {skipped} of <{name}> is skipped: it is specific to another engine");
            self.warnings.push(Place::of(file, node).text(text));
        }
        check_content(file, node, attributes, VENDOR_ATTRIBUTES)
    }

    fn element(&mut self, file: &str, library: &str, node: &Node<'_, '_>) -> Result<Option<Element>> {
        let place = Place::of(file, node);
        let name = node.tag_name().name();
        let Some(entity) = Entity::of_element(name) else {
            if name == "participant_factory_qos" || name == "domainparticipant_factory_qos" {
                self.warnings.push(place.text(format!("<{name}> is skipped: Weir has no such entity")));
                return Ok(None);
            }
            let hint = similar(name, Entity::ELEMENTS);
            return Err(place.error(format!("<qos_profile> has no element <{name}>{hint}")));
        };
        self.check_content(file, node, &["name", "base_name", "topic_filter"])?;
        let mut setters = Vec::new();
        for policy in node.children().filter(Node::is_element) {
            setters.extend(read_policy(entity, file, &policy, &mut self.warnings)?);
        }
        Ok(Some(Element {
            entity,
            filter: node.attribute("topic_filter").map(str::to_owned),
            base: base_of(file, library, node),
            setters,
            place,
        }))
    }

    /// Finds mistakes that concern several elements: bases that do not exist, cycles, and policies that contradict each
    /// other.
    pub(super) fn check(&self) -> Result {
        for profile in &self.profiles {
            for entity in Entity::ALL {
                self.resolve(&profile.name, entity, None)?;
                let filters = profile.elements.iter().filter(|element| element.entity == entity);
                let names = filters.filter_map(|element| element.filter.as_deref());
                for topic in names.filter(|filter| !filter.contains(['*', '?', '['])) {
                    self.resolve(&profile.name, entity, Some(topic))?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn profiles(&self) -> impl Iterator<Item = &str> {
        self.profiles.iter().map(|profile| profile.name.as_str())
    }

    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the QoS of an entity by a profile.
    pub(super) fn resolve(&self, profile: &str, entity: Entity, topic: Option<&str>) -> Result<Draft> {
        let Some(index) = self.by_name.get(profile) else {
            let names: Vec<&str> = self.profiles().collect();
            let hint = similar(profile, &names);
            return Err(QosProfileError::of_file(format!("there is no QoS profile {profile:?}{hint}")));
        };
        let profile = &self.profiles[*index];
        let draft = self.apply(profile, entity, topic, 0)?;
        let of_kind = |element: &&Element| element.entity == entity && element.fits(topic);
        if let Some(element) = profile.elements.iter().find(of_kind) {
            draft.check(entity).map_err(|error| element.place.error(error))?;
        }
        Ok(draft)
    }

    fn apply(&self, profile: &Profile, entity: Entity, topic: Option<&str>, depth: usize) -> Result<Draft> {
        let element = profile.elements.iter().find(|element| element.entity == entity && element.fits(topic));
        if let Some(element) = element.filter(|element| element.base.is_some()) {
            return self.apply_element(element, topic, depth);
        }
        let mut draft = match &profile.base {
            Some(base) => self.apply(self.base(base, depth)?, entity, topic, depth + 1)?,
            None => Draft::new(entity),
        };
        element.iter().for_each(|element| element.setters.iter().for_each(|setter| setter.apply(&mut draft)));
        Ok(draft)
    }

    /// Applies an element on top of its own base, which goes before that of its profile.
    fn apply_element(&self, element: &Element, topic: Option<&str>, depth: usize) -> Result<Draft> {
        let mut draft = match &element.base {
            Some(base) => self.apply(self.base(base, depth)?, element.entity, topic, depth + 1)?,
            None => Draft::new(element.entity),
        };
        element.setters.iter().for_each(|setter| setter.apply(&mut draft));
        Ok(draft)
    }

    fn base(&self, base: &Base, depth: usize) -> Result<&Profile> {
        if depth >= BASES_MAX {
            let cause =
                format!("base_name {:?}: the profiles inherit from each other without end", base.name);
            return Err(base.place.error(cause));
        }
        let index = self.by_name.get(&base.name).ok_or_else(|| {
            let names: Vec<&str> = self.profiles().collect();
            base.place.error(format!(
                "base_name: there is no profile {:?}{}",
                base.name,
                similar(&base.name, &names)
            ))
        })?;
        Ok(&self.profiles[*index])
    }
}

impl Element {
    fn fits(&self, topic: Option<&str>) -> bool {
        match (&self.filter, topic) {
            (None, _) => true,
            (Some(filter), Some(topic)) => fnmatch(filter, topic),
            (Some(_), None) => false,
        }
    }
}

fn name_of<'a>(file: &str, node: &Node<'a, '_>) -> Result<&'a str> {
    match node.attribute("name").map(str::trim) {
        Some(name) if !name.is_empty() && !name.contains("::") => Ok(name),
        Some(name) => Err(Place::of(file, node).error(format!("name {name:?}: use a name without \"::\""))),
        None => {
            let cause = format!("<{}> needs the attribute name", node.tag_name().name());
            Err(Place::of(file, node).error(cause))
        }
    }
}

/// Names of the same library may be without it.
fn base_of(file: &str, library: &str, node: &Node<'_, '_>) -> Option<Base> {
    let name = node.attribute("base_name")?.trim();
    let name = if name.contains("::") { name.to_owned() } else { format!("{library}::{name}") };
    Some(Base { name, place: Place::of(file, node) })
}
