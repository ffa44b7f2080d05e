//! Runs plans in pods of a Kubernetes cluster, with the same contract as the local engine.
//!
//! [`ClusterRunner::open`] checks the prerequisites (`preflight`), creates one Job
//! ([`manifest`]), waits for its pod (`pod_wait`, `diagnose`), sends the agent (`agent_upload`),
//! and is then a [`Session`](iosonde_result::session::Session). The Job owns all other objects.

mod agent_upload;
mod api;
mod attach;
mod bounded_requests;
mod class_retention;
mod clock;
mod collect;
mod connect;
mod connection;
mod csi;
mod device_consent;
mod diagnose;
mod event_signal;
mod existing_pods;
mod existing_pods_scripts;
#[cfg(test)]
mod fake_api;
mod free_room;
pub mod image;
mod kept_directory;
pub mod leftovers;
mod lifecycle;
pub mod manifest;
mod namespace;
mod node_network;
mod node_readiness;
mod node_session;
mod node_taints;
mod node_watch;
mod object_events;
mod object_removal;
mod object_watch;
pub mod options;
mod patch;
mod pod_client;
mod pod_command;
mod pod_selection;
mod pod_session;
mod pod_set;
mod pod_wait;
mod preflight;
mod progress_sum;
mod quantity;
mod reconnect;
mod refusal;
pub mod render;
mod rights_role;
mod run_objects;
mod run_watch;
#[cfg(test)]
mod sample_spec;
mod selected_pods;
mod serving_nodes;
mod setup_observer;
pub mod survey;
mod volume_origin;

pub use attach::{Attached, attach};
pub use collect::{CollectedDocuments, CollectedOutput, CollectedResult, PodDocument, collect};
pub use csi::{CsiOptions, CsiSession};
pub use kept_directory::KeptDirectory;
pub use lifecycle::LifecycleSession;
pub use node_session::NodeSession;
pub use node_watch::NodeSample;
pub use options::{
    AgentProgram, ClusterOptions, KeepOption, NeededSpace, PodPlacement, Pods, VolumeMode,
};
pub use pod_session::{OsdCacheDrop, PodSession, inspection_rights};
pub use pod_set::{ClusterRunner, PreflightResult, check};
pub use setup_observer::{SetupEvent, SetupObserver};
