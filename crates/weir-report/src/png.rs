//! Plots as PNG.
//!
//! Texts are drawn with a font of this program, so that every host makes the same picture.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};
use thiserror::Error;

/// Why an SVG document has no picture.
#[derive(Debug, Error)]
pub enum PngError {
    /// It is damaged.
    #[error("the SVG document cannot be read: {0}")]
    Unreadable(resvg::usvg::Error),
    /// It is empty or too large to be drawn.
    #[error("a picture of {0} x {1} pixels cannot be drawn: at most {SIDE_MAX} on each side")]
    Size(u32, u32),
    /// The picture cannot be encoded.
    #[error("the picture cannot be encoded: {0}")]
    Encoding(String),
}

/// Draws an SVG document, such as that of a [`crate::Plot`], with two pixels for each of its units.
///
/// # Errors
/// When the document is damaged, empty or too large.
pub fn png(svg: &str) -> Result<Vec<u8>, PngError> {
    let options = Options { fontdb: Arc::clone(&FONTS), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(PngError::Unreadable)?;
    let [width, height] =
        [tree.size().width(), tree.size().height()].map(|side| (side * SCALE).ceil() as u32);
    let refused = || PngError::Size(width, height);
    let fits = (1..=SIDE_MAX).contains(&width) && (1..=SIDE_MAX).contains(&height);
    let mut picture = Pixmap::new(width, height).filter(|_| fits).ok_or_else(refused)?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut picture.as_mut());
    picture.encode_png().map_err(|error| PngError::Encoding(error.to_string()))
}

/// The font of all texts.
static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
    let family = fonts.faces().next().and_then(|face| face.families.first().map(|(name, _)| name.clone()));
    fonts.set_sans_serif_family(family.unwrap_or_default());
    Arc::new(fonts)
});

/// Pixels for each unit of the document.
const SCALE: f32 = 2.0;

/// Larger pictures are refused.
const SIDE_MAX: u32 = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    fn document(width: u32, text: &str) -> String {
        format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='40'>\
             <rect width='100%' height='100%' fill='white'/>\
             <text x='2' y='30' font-family='sans-serif' font-size='20'>{text}</text></svg>"
        )
    }

    #[test]
    fn texts_are_drawn_without_the_fonts_of_the_host() {
        let dark = |text: &str| {
            let picture = Pixmap::decode_png(&png(&document(100, text)).unwrap()).unwrap();
            assert_eq!((picture.width(), picture.height()), (200, 80));
            picture.pixels().iter().filter(|pixel| pixel.red() < 128).count()
        };
        assert_eq!(dark(""), 0);
        assert!(dark("latency") > dark("l") && dark("l") > 10);
    }

    #[test]
    fn what_is_no_picture_is_refused() {
        assert!(matches!(png("<svg"), Err(PngError::Unreadable(_))));
        assert!(matches!(png(&document(9_000, "wide")), Err(PngError::Size(18_000, 80))));
    }
}
