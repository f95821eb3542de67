//! What is measured and how.
//!
//! The bench runs every engine through the same harness: two processes of the same program, joined
//! by a control channel, one case after the other. It prints nothing and knows no file format:
//! progress goes to a callback, results are [`weir_results::Case`]s.
//!
//! - [`plan`]: from options to a list of cases; [`case`]: one of them; [`goals`]: the cases of `weir targets`
//! - [`coordinator`]: runs the plan; `settled`: when repeats may end
//! - `session`: the processes of a case; `processes`: those of this host; [`agent`]: one of them; `introductions`: how
//!   it joins; [`control`]: their messages; `watch`: what an end does to its host
//! - [`hosts`]: processes of a case on other hosts, through SSH
//! - [`by_hand`]: two ends without a coordinator, typically on two hosts
//! - [`endpoint`]: the interface between harness and engine; [`engine`]: the engines of this build;
//!   [`tuning`]: their settings
//! - [`latency`], [`throughput`], [`open_loop`]: the measurements; [`rate`]: the rate of the open loop;
//!   [`arrivals`]: its latencies; [`breakdown`]: the stages of a latency
//! - [`payload`]: the bytes of a sample; [`test_data`]: its DDS type; [`sink`]: counts and checks samples
//! - [`inbox`], [`ping_pong`]: what listeners of other engines do with a sample
//! - [`workload`]: many topics at fixed rates
//! - `record`: from the reports of the ends to a result with its doubts
//! - [`path`]: the network between the ends; [`link_capacity`]: the sample rate that a link can carry;
//!   [`path_watch`]: what an engine knows of its paths
//! - [`beside`]: what shares the link with a case
//! - [`domain`]: many participants that start together
//! - [`outside`]: independent programs that check the baseline
//! - [`host`]: interfaces and processors; [`keep_awake`]: keeps processors out of idle states;
//!   [`idle_check`]: what these states do to latencies;
//!   [`doctor`]: what would spoil a measurement; [`footprint`]: memory and size of a program that waits

pub mod agent;
pub mod arrivals;
pub mod beside;
pub mod breakdown;
pub mod by_hand;
pub mod case;
pub mod control;
pub mod coordinator;
pub mod doctor;
pub mod domain;
pub mod endpoint;
pub mod engine;
pub mod footprint;
pub mod goals;
pub mod host;
pub mod hosts;
pub mod idle_check;
pub mod inbox;
mod introductions;
pub mod keep_awake;
pub mod latency;
pub mod link_capacity;
pub mod live;
pub mod open_loop;
pub mod outside;
pub mod path;
pub mod path_watch;
pub mod payload;
pub mod ping_pong;
pub mod plan;
mod processes;
pub mod rate;
mod record;
mod session;
mod settled;
pub mod sink;
pub mod test_data;
pub mod throughput;
pub mod tuning;
mod watch;
pub mod workload;

pub use processes::AgentCommand;
pub use record::Fault;
