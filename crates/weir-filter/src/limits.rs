//! Bounds on expressions. They hold for expressions of the application and of peers alike.

/// Length of an expression, in bytes.
pub const EXPRESSION_MAX_BYTES: usize = 4096;

/// Depth of parentheses and NOTs.
pub const DEPTH_MAX: usize = 32;

/// Number of comparisons in an expression. A BETWEEN counts as two.
pub const COMPARISONS_MAX: usize = 256;

/// Number of parameters: `%0` to `%99` (DDS 1.4, annex B).
pub const PARAMETERS_MAX: usize = 100;

/// Length of a parameter, in bytes.
pub const PARAMETER_MAX_BYTES: usize = 256;

/// Number of names and indices in the name of a member, such as 3 in `a.b[0]`.
pub const PATH_MAX: usize = 16;

/// Number of members after ORDER BY.
pub const ORDER_MAX: usize = 16;

/// Length of a part of a LIKE pattern between two `%`, in bytes; a `_` counts as one.
pub const PATTERN_PART_MAX: usize = 64;

/// Number of such parts in all patterns of an expression. Each has a table of 2 KiB.
pub const PATTERN_PARTS_MAX: usize = 64;
