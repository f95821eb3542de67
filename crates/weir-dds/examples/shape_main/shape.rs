//! The type, and its text form.

use weir_dds::DdsType;

/// A shape, as in the suite's IDL.
#[derive(DdsType, Debug, Default, Clone, PartialEq)]
#[dds(extensibility = "appendable")]
pub(crate) struct ShapeType {
    #[dds(key, max_len = 128)]
    pub(crate) color: String,
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) shapesize: i32,
    pub(crate) additional_payload_size: Vec<u8>,
}

impl ShapeType {
    /// The line that is printed for a sample.
    pub(crate) fn line(&self, topic: &str) -> String {
        let Self { color, x, y, shapesize, additional_payload_size } = self;
        let line = format!("{topic:<10} {color:<10} {x:03} {y:03} [{shapesize}]");
        match additional_payload_size.last() {
            Some(last) => format!("{line} {{{last}}}"),
            None => line,
        }
    }
}

/// The line that is printed for an instance that is not alive.
pub(crate) fn end_line(topic: &str, color: &str, state: &str) -> String {
    format!("{topic:<10} {color:<10} {state}")
}

/// A shape's movement within the drawing area.
pub(crate) struct Motion {
    x_velocity: i32,
    y_velocity: i32,
}

impl Motion {
    /// Puts a shape at a random place, and gives it a random direction.
    pub(crate) fn start(shape: &mut ShapeType, random: u64) -> Self {
        shape.x = (random % WIDTH as u64) as i32;
        shape.y = (random >> 16) as i32 & 0xff;
        let velocity = |random: u64| (1 + (random % 5) as i32) * if random & 8 == 0 { 1 } else { -1 };
        Self { x_velocity: velocity(random >> 32), y_velocity: velocity(random >> 48) }
    }

    /// Moves a shape one step. It rebounds at the edges.
    pub(crate) fn step(&mut self, shape: &mut ShapeType) {
        bounce(&mut shape.x, &mut self.x_velocity, WIDTH);
        bounce(&mut shape.y, &mut self.y_velocity, HEIGHT);
    }
}

fn bounce(position: &mut i32, velocity: &mut i32, max: i32) {
    let next = *position + *velocity;
    *position = next.clamp(0, max);
    if *position != next {
        *velocity = -*velocity;
    }
}

/// The drawing area, in pixels.
const WIDTH: i32 = 240;
const HEIGHT: i32 = 270;
