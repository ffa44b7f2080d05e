//! The embedded catalogue, and its extension by a user's file.

use crate::Limits;
use crate::check;
use crate::error::LimitsFileError;
use std::sync::OnceLock;

impl Limits {
    /// Returns the limits of the embedded `data/limits.toml`.
    pub fn published() -> &'static Limits {
        static PUBLISHED: OnceLock<Limits> = OnceLock::new();
        PUBLISHED.get_or_init(|| {
            let text = include_str!("../../../data/limits.toml");
            match check::read_limits_file("data/limits.toml", text, None) {
                Ok(file) => Limits::from_file(file),
                // Tests read the same text.
                Err(error) => panic!("{error}"),
            }
        })
    }

    /// Returns these limits with those of a user's file, which may refer to the caps of these. A
    /// product of the file replaces all editions of the product with the same name.
    pub fn with_file(&self, name: &str, text: &str) -> Result<Limits, LimitsFileError> {
        let own = Limits::from_file(check::read_limits_file(name, text, Some(self))?);
        let mut all = self.clone();
        all.products
            .retain(|product| !own.has(product.name.get_ref()));
        all.disk_counts.retain(|table| {
            !table
                .products
                .iter()
                .any(|product| own.has(product.get_ref()))
        });
        all.products.extend(own.products);
        all.caps.extend(own.caps);
        all.disk_counts.extend(own.disk_counts);
        all.machine_types.extend(own.machine_types);
        Ok(all)
    }
}
