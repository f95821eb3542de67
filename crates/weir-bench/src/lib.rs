//! What is measured and how.
//!
//! The bench runs every engine through the same harness: two processes of the same program, joined
//! by a control channel, one case after the other. It prints nothing and knows no file format:
//! progress goes to a callback, results are [`weir_results::Case`]s.
//!
//! - [`plan`]: from options to a list of cases
//! - [`case`]: one point of a measurement
//! - [`coordinator`]: runs the plan; `session`: the two processes of a case; [`agent`]: one of them
//! - [`control`]: what coordinator and agents say to each other; [`signal`]: the part that reaches
//!   a running measurement
//! - [`by_hand`]: two ends that nobody coordinates, mostly on two hosts
//! - [`endpoint`]: the seam between the harness and an engine; [`engine`]: the engines of this build
//! - [`latency`], [`throughput`], [`open_loop`]: the measurements
//! - [`breakdown`]: where the time of a ping-pong goes
//! - [`path`]: what lies between the ends; [`link`]: what it could carry of samples
//! - [`payload`]: the bytes of a sample; [`sink`]: where a subscriber's samples are counted and checked
//! - [`goals`]: the series of cases that tell whether the engine is where it is to be; [`footprint`]: programs that wait
//! - [`keep_awake`]: holding the processors out of idle
//! - [`inbox`], [`rally`]: what listeners of other engines do with a sample
//! - [`doctor`]: what would spoil a measurement
//! - `record`: from what both ends found to a result with its doubts
//! - [`outside`]: independent programs beside our floor
//! - [`tuning`]: the settings of engines, and what the user chose instead
//! - [`host`]: interfaces and processors; [`clock`]: monotonic nanoseconds

pub mod agent;
pub mod arrivals;
pub mod breakdown;
pub mod by_hand;
pub mod case;
pub mod control;
pub mod coordinator;
pub mod doctor;
pub mod endpoint;
pub mod engine;
pub mod footprint;
pub mod goals;
pub mod host;
pub mod inbox;
pub mod keep_awake;
pub mod latency;
pub mod link_capacity;
pub mod open_loop;
pub mod outside;
pub mod path;
pub mod payload;
pub mod plan;
pub mod rally;
pub mod rate;
mod record;
mod session;
pub mod sink;
pub mod test_data;
pub mod throughput;
pub mod tuning;

pub use record::Fault;
pub use session::AgentCommand;
