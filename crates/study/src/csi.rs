//! Data services of a storage class: how long snapshot, restore, clone and expansion take over the
//! size of the data, whether the data are right, and what they cost an application.

mod csi_parts;
mod csi_result;
mod service_summary;

pub use csi_parts::csi_parts;
pub use csi_result::{CsiDocument, CsiResult, FORMAT, schema};
pub use service_summary::{ServiceLatencies, ServiceSlope, ServiceSummary};
