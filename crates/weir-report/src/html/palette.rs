//! The colours of a report's engines, and how points are named and divided into small plots.

use crate::group::{Group, Load, Point, conditions_of};
use crate::html::chart::Line;
use crate::html::figure::Key;
use crate::plot::{Hue, hues};

/// The colours of engines, the same in all groups of a run.
pub(crate) struct Palette<'a>(Vec<(&'a str, Hue)>);

impl<'a> Palette<'a> {
    pub(crate) fn new(groups: &'a [Group<'_>]) -> Self {
        let mut engines: Vec<&str> = Vec::new();
        for engine in groups.iter().flat_map(Group::engines) {
            if !engines.contains(&engine) {
                engines.push(engine);
            }
        }
        Self(hues(engines))
    }

    pub(crate) fn hue(&self, engine: &str) -> Hue {
        self.0.iter().find(|(name, _)| *name == engine).map_or(Hue::Floor, |(_, hue)| *hue)
    }

    /// The entries of a legend for those of a group's engines that have a line.
    pub(crate) fn keys<'l>(&self, group: &Group<'_>, lines: impl Iterator<Item = &'l Line>) -> Vec<Key> {
        let drawn: Vec<Hue> = lines.map(|line| line.hue).collect();
        let engines = group.engines().into_iter().map(|engine| (engine, self.hue(engine)));
        let shown = engines.filter(|(_, hue)| drawn.contains(hue));
        shown.map(|(engine, hue)| Key::Engine(engine.to_owned(), hue)).collect()
    }
}

/// The name of a point, without its size.
pub(crate) fn name_of(point: &Point<'_>) -> String {
    conditions_of(&point.engine, point)
}

/// The points of a group by size and load, each with a heading.
pub(crate) fn panels<'g, 'a>(group: &'g Group<'a>) -> Vec<(String, Vec<&'g Point<'a>>)> {
    type Place = (u64, Option<Load>);
    let mut panels: Vec<(Place, Vec<&Point<'a>>)> = Vec::new();
    for point in &group.points {
        let place = (point.size_bytes, point.load);
        match panels.iter_mut().find(|(known, _)| *known == place) {
            Some((_, points)) => points.push(point),
            None => panels.push((place, vec![point])),
        }
    }
    let heading = |points: &[&Point<'_>]| conditions_of(&format!("{} B", points[0].size_bytes), points[0]);
    panels.into_iter().map(|(_, points)| (heading(&points), points)).collect()
}
