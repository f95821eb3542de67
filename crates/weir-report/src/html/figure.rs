//! A figure of the HTML report: one or several plots, with their legend, caption and data.

use maud::{Markup, html};

use crate::html::chart::{Drawing, dot, hue_class};
use crate::html::table::Table;
use crate::plot::Hue;

/// Plots that belong together.
pub(crate) struct Figure {
    /// The start of its name as a file.
    pub(crate) name: &'static str,
    pub(crate) title: String,
    /// What a reader must know to read the plots.
    pub(crate) note: String,
    pub(crate) legend: Vec<Key>,
    pub(crate) plots: Vec<Drawing>,
    pub(crate) data: Table,
}

/// An entry of a legend.
pub(crate) enum Key {
    Engine(String, Hue),
    /// A whole line, or a dashed one.
    Line(&'static str, bool),
    /// A full dot, or a hollow one.
    Dot(&'static str, bool),
    Whisker(&'static str),
    /// A value to compare with.
    Reference(&'static str),
    Cross(String),
    /// A part of a bar, by the number of its colour.
    Part(&'static str, usize),
}

impl Figure {
    pub(crate) fn render(&self) -> Markup {
        html! {
            figure.many[self.plots.len() > 1] {
                figcaption { strong { (self.title) } @if !self.note.is_empty() { " " (self.note) } }
                @if !self.legend.is_empty() {
                    ul.legend { @for key in &self.legend { li { (key.sample()) (key.text()) } } }
                }
                div.plots { @for plot in &self.plots { (plot.render()) } }
                details {
                    summary { "The data behind this plot" }
                    (self.data.render())
                }
            }
        }
    }
}

impl Key {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Engine(name, _) => name,
            Self::Line(text, _)
            | Self::Dot(text, _)
            | Self::Whisker(text)
            | Self::Reference(text)
            | Self::Part(text, _) => text,
            Self::Cross(text) => text,
        }
    }

    fn sample(&self) -> Markup {
        html! { svg.key viewBox="0 0 24 14" aria-hidden="true" { (self.drawn()) } }
    }

    /// The elements of its picture, which is 24 wide and 14 high.
    pub(crate) fn drawn(&self) -> Markup {
        let hue = if let Self::Engine(_, hue) = self { *hue } else { Hue::Floor };
        html! {
            g class=(hue_class(hue)) {
                @match self {
                    Self::Engine(..) => { path.line d="M0 7H24" {} (dot((12.0, 7.0), hue, false, false)) }
                    Self::Line(_, is_dashed) => { path.line.dashed[*is_dashed] d="M0 7H24" {} }
                    Self::Dot(_, is_hollow) => { (dot((12.0, 7.0), hue, *is_hollow, false)) }
                    Self::Whisker(_) => { path.whisker d="M12 0V14" {} }
                    Self::Reference(_) => { path.reference d="M0 7H24" {} }
                    Self::Cross(_) => { (dot((12.0, 7.0), hue, false, true)) }
                    Self::Part(_, part) => { rect class={ "s" (part) } x="4" y="1" width="16" height="12" {} }
                }
            }
        }
    }
}
