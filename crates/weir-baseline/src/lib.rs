//! Raw UDP: the baseline that engines are compared with.

mod remote;

pub use remote::{
    BASELINE_PORT, Client, ClientSettings, Measured, PingReport, Point, PointTest, ReceiveReport, Request,
    Response, SendReport, UDP_BYTES_MIN, WeirUdp, cases,
};
