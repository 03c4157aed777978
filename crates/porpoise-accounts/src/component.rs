//! Components that are installed: `mysql.component`. The only one there is validates passwords
//! ([`porpoise_core::password_validation`]).
//!
//! MySQL 8.4 manual, 15.7.4.3 (INSTALL COMPONENT).

use parking_lot::Mutex;
use porpoise_catalog::dictionary::{KIND_COMPONENT, delete_record, put_record, read_kind};
use porpoise_core::error::{Error, Result};
use porpoise_core::password_validation::COMPONENT;
use porpoise_storage::Store;
use serde::{Deserialize, Serialize};

/// The installed components of a database, by their URNs, in the order in which they came.
#[derive(Debug, Default)]
pub struct Components {
    installed: Mutex<Vec<Component>>,
}

/// A row of `mysql.component`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    /// The row's number.
    pub id: u32,
    /// The number that the components of one INSTALL COMPONENT share.
    pub group: u32,
    /// Its name.
    pub urn: String,
}

impl Components {
    /// Reads them.
    pub fn open(store: &Store) -> Result<Components> {
        let records = read_kind::<Component>(store, KIND_COMPONENT)?;
        let mut installed: Vec<Component> = records.into_iter().map(|(_, one)| one).collect();
        installed.sort_by_key(|one| one.id);
        Ok(Components {
            installed: Mutex::new(installed),
        })
    }

    /// All of them.
    pub fn all(&self) -> Vec<Component> {
        self.installed.lock().clone()
    }

    /// Whether a component is installed.
    pub fn has(&self, urn: &str) -> bool {
        self.installed.lock().iter().any(|one| one.urn == urn)
    }

    /// INSTALL COMPONENT, durably: all or none.
    ///
    /// # Errors
    /// 3527 for a name without a scheme, 3529 for one that isn't there or is installed.
    pub fn install(&self, store: &Store, urns: &[Box<str>]) -> Result<()> {
        let mut installed = self.installed.lock();
        let mut all = installed.clone();
        let mut transaction = store.begin();
        let group = all.iter().map(|one| one.group).max().unwrap_or(0) + 1;
        for urn in urns {
            if !urn.contains("://") {
                return Err(Error::component_without_scheme(urn));
            }
            if **urn != *COMPONENT || all.iter().any(|one| one.urn == **urn) {
                return Err(Error::cannot_load_component(urn));
            }
            let component = Component {
                id: all.iter().map(|one| one.id).max().unwrap_or(0) + 1,
                group,
                urn: urn.to_string(),
            };
            put_record(&mut transaction, KIND_COMPONENT, urn.as_bytes(), &component)?;
            all.push(component);
        }
        transaction.commit()?.wait()?;
        *installed = all;
        Ok(())
    }

    /// UNINSTALL COMPONENT, durably: all or none.
    ///
    /// # Errors
    /// 3537 for one that isn't installed.
    pub fn uninstall(&self, store: &Store, urns: &[Box<str>]) -> Result<()> {
        let mut installed = self.installed.lock();
        let mut all = installed.clone();
        let mut transaction = store.begin();
        for urn in urns {
            let at = all.iter().position(|one| one.urn == **urn);
            let at = at.ok_or_else(|| Error::component_not_loaded(urn))?;
            delete_record(&mut transaction, KIND_COMPONENT, urn.as_bytes());
            all.remove(at);
        }
        transaction.commit()?.wait()?;
        *installed = all;
        Ok(())
    }
}
