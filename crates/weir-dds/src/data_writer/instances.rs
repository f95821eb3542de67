//! Registering, disposing and unregistering instances (DDS 1.4, 2.2.2.4.2).

use std::sync::atomic::Ordering;
use std::time::SystemTime;

use weir_cdr::DdsType;
use weir_rtps::config;
use weir_rtps::writer::{ChangeKind, WriterCore};
use weir_wire::Timestamp;

use super::DataWriter;
use super::inner::Inner;
use super::registered::InstanceKey;
use super::write::{Ending, Source};
use crate::clock::timestamp_of;
use crate::error::{DdsError, Result};
use crate::instance_handle::InstanceHandle;
use crate::key::{instance_of, key_hash_of};

impl<T: DdsType> DataWriter<T> {
    /// Disposes an instance. Only the key members of `sample` are used.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(writer: &DataWriter<Reading>) -> weir_dds::Result<()> {
    /// writer.dispose(&Reading { sensor: 7, ..Reading::default() })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DataWriter::write`], for the end of the instance in place of a sample; [`DdsError::BadParameter`] if the
    /// topic has no key.
    pub fn dispose(&self, sample: &T) -> Result<()> {
        let (handle, key) = self.key_of(sample)?;
        self.change(handle, &key, ChangeKind::Disposed, None)
    }

    /// Disposes an instance, with a source timestamp chosen by the caller.
    ///
    /// ```no_run
    /// # use std::time::SystemTime;
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, sample: &T, ended: SystemTime) -> weir_dds::Result<()> {
    /// writer.dispose_w_timestamp(sample, ended)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DataWriter::dispose`]; [`DdsError::BadParameter`] also if the timestamp is before 1970 or after 2106.
    pub fn dispose_w_timestamp(&self, sample: &T, timestamp: SystemTime) -> Result<()> {
        let (handle, key) = self.key_of(sample)?;
        self.change(handle, &key, ChangeKind::Disposed, Some(timestamp_of(timestamp)?))
    }

    /// Disposes a registered instance, see [`DataWriter::dispose`].
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(writer: &DataWriter<Reading>) -> weir_dds::Result<()> {
    /// let sensor = writer.register_instance(&Reading { sensor: 7, ..Reading::default() })?;
    /// writer.dispose_by_handle(sensor)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DataWriter::write`], for the end of the instance in place of a sample; [`DdsError::BadParameter`] if the
    /// instance is not registered. Closing the writer unregisters all.
    pub fn dispose_by_handle(&self, handle: InstanceHandle) -> Result<()> {
        self.change(handle, &self.registered(handle)?, ChangeKind::Disposed, None)
    }

    /// Registers an instance, so that it can be disposed or unregistered by its handle.
    ///
    /// Only the key members of `sample` are used. Sends nothing. Writing and disposing register an instance, too, but
    /// not every writer remembers its key then
    /// ([WRITER_DATA_LIFECYCLE](crate::DataWriterQos::autodispose_unregistered_instances())). Closing or dropping the
    /// writer unregisters its instances.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(writer: &DataWriter<Reading>) -> weir_dds::Result<()> {
    /// let sensor = writer.register_instance(&Reading { sensor: 7, ..Reading::default() })?;
    /// writer.write(&Reading { sensor: 7, celsius: 21.5 })?;
    /// writer.unregister_by_handle(sensor)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::BadParameter`]: the topic has no key.
    /// - [`DdsError::OutOfResources`]: `max_instances`, that of the limits table, or 2 000 000 instances are reached.
    /// - [`DdsError::Encoding`]: the type does not allow the key.
    /// - [`DdsError::NotEnabled`]: the writer is not [enabled](DataWriter::enable) yet.
    /// - [`DdsError::AlreadyDeleted`]: the writer, its publisher or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn register_instance(&self, sample: &T) -> Result<InstanceHandle> {
        let (handle, key) = self.key_of(sample)?;
        let mut core = self.inner.endpoint.lane.core();
        let mut registered = self.inner.registered.lock();
        if registered.len() >= config::INSTANCES_MAX && !registered.contains(handle) {
            let text = format!("{} instances are registered already", config::INSTANCES_MAX);
            return Err(DdsError::OutOfResources(text));
        }
        core.register_instance(key.hash).map_err(|refused| self.inner.refusal(refused))?;
        registered.insert(handle, key);
        core.ask_for_new_instances(self.inner.asks_for_new(registered.len()));
        Ok(handle)
    }

    /// As [`DataWriter::register_instance`]: registering sends nothing, so the timestamp has no effect.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, sample: &T) -> weir_dds::Result<()> {
    /// let instance = writer.register_instance_w_timestamp(sample, std::time::SystemTime::now())?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DataWriter::register_instance`].
    pub fn register_instance_w_timestamp(
        &self,
        sample: &T,
        _timestamp: SystemTime,
    ) -> Result<InstanceHandle> {
        self.register_instance(sample)
    }

    /// Returns a sample with the key members of a registered instance and all other members at
    /// their defaults. `None`: it is not registered.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// # }
    /// # fn f(writer: &DataWriter<Reading>) -> weir_dds::Result<()> {
    /// let instance = writer.register_instance(&Reading { sensor: 7 })?;
    /// assert_eq!(writer.key_value(instance).map(|key| key.sensor), Some(7));
    /// # Ok(())
    /// # }
    /// ```
    pub fn key_value(&self, handle: InstanceHandle) -> Option<T> {
        weir_cdr::from_key_payload(&self.registered(handle).ok()?.payload).ok()
    }

    /// Unregisters an instance: this writer no longer writes it. Only the key members of `sample`
    /// are used.
    ///
    /// Disposes the instance as well if
    /// [`DataWriterQos::autodispose_unregistered_instances`](crate::DataWriterQos::autodispose_unregistered_instances)
    /// is set.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(writer: &DataWriter<Reading>) -> weir_dds::Result<()> {
    /// writer.unregister_instance(&Reading { sensor: 7, ..Reading::default() })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DataWriter::dispose`].
    pub fn unregister_instance(&self, sample: &T) -> Result<()> {
        let (handle, key) = self.key_of(sample)?;
        self.unregister(handle, &key, None)
    }

    /// Unregisters an instance, with a source timestamp chosen by the caller.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, sample: &T) -> weir_dds::Result<()> {
    /// writer.unregister_instance_w_timestamp(sample, std::time::SystemTime::now())?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DataWriter::unregister_instance`]; [`DdsError::BadParameter`] also if the timestamp is before 1970 or after
    /// 2106.
    pub fn unregister_instance_w_timestamp(&self, sample: &T, timestamp: SystemTime) -> Result<()> {
        let (handle, key) = self.key_of(sample)?;
        self.unregister(handle, &key, Some(timestamp_of(timestamp)?))
    }

    /// Unregisters a registered instance, see [`DataWriter::unregister_instance`].
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, sample: &T) -> weir_dds::Result<()> {
    /// let instance = writer.register_instance(sample)?;
    /// writer.unregister_by_handle(instance)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DataWriter::dispose_by_handle`].
    pub fn unregister_by_handle(&self, handle: InstanceHandle) -> Result<()> {
        self.unregister(handle, &self.registered(handle)?, None)
    }

    fn unregister(
        &self,
        handle: InstanceHandle,
        key: &InstanceKey,
        timestamp: Option<Timestamp>,
    ) -> Result<()> {
        self.change(handle, key, self.inner.unregistration(), timestamp)?;
        let mut core = self.inner.endpoint.lane.core();
        let mut registered = self.inner.registered.lock();
        if registered.remove(handle) {
            core.ask_for_new_instances(self.inner.asks_for_new(registered.len()));
        }
        Ok(())
    }

    fn registered(&self, handle: InstanceHandle) -> Result<InstanceKey> {
        let known = self.inner.registered.lock().get(handle).cloned();
        known.ok_or_else(|| {
            DdsError::BadParameter(
                "no instance with this handle is registered: call register_instance".to_owned(),
            )
        })
    }

    fn change(
        &self,
        handle: InstanceHandle,
        key: &InstanceKey,
        kind: ChangeKind,
        timestamp: Option<Timestamp>,
    ) -> Result<()> {
        let inner = &*self.inner;
        let undelimited = inner.undelimited(&key.payload);
        let payload = undelimited.as_deref().unwrap_or(&key.payload);
        inner.has_ended.store(true, Ordering::Relaxed);
        let ending = Ending { kind, handle, key, payload };
        inner.write(Source::<T>::End(&ending), (Some(key.hash), payload.len()), timestamp)
    }

    /// Returns the handle of a sample's instance, and its key.
    fn key_of(&self, sample: &T) -> Result<(InstanceHandle, InstanceKey)> {
        if !T::HAS_KEY {
            let text = format!("topics of type {} have no key, and so no instances", T::TYPE_NAME);
            return Err(DdsError::BadParameter(text));
        }
        let encoding = self.inner.encoding;
        let payload = weir_cdr::key_payload(sample, encoding)?.into_boxed_slice();
        let key = InstanceKey { hash: key_hash_of(sample, encoding)?, payload };
        Ok((InstanceHandle(instance_of(sample)?), key))
    }

    /// Returns the handle of a sample's instance.
    ///
    /// Only the key members of `sample` are used. `None` if the instance is not
    /// [registered](DataWriter::register_instance), or was only written and is not remembered, or if the topic has no
    /// key.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(writer: &DataWriter<Reading>) -> weir_dds::Result<()> {
    /// let registered = writer.register_instance(&Reading { sensor: 7, ..Reading::default() })?;
    /// assert_eq!(writer.lookup_instance(&Reading { sensor: 7, celsius: 1.0 })?, Some(registered));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`DdsError::Encoding`] if the type does not allow the key.
    pub fn lookup_instance(&self, sample: &T) -> Result<Option<InstanceHandle>> {
        if !T::HAS_KEY {
            return Ok(None);
        }
        let handle = InstanceHandle(instance_of(sample)?);
        Ok(self.inner.registered.lock().contains(handle).then_some(handle))
    }
}

impl Inner {
    /// Returns whether the core is to ask for instances that are written for the first time, with so many registered.
    pub(super) fn asks_for_new(&self, registered: usize) -> bool {
        self.remembers_instances && registered < config::INSTANCES_REMEMBERED
    }

    /// Registers an instance that is written or disposed for the first time (DDS 1.4, 2.2.2.4.2.5), and remembers its
    /// key, so that it ends with the writer.
    ///
    /// With [`config::INSTANCES_REMEMBERED`] instances, the core asks for no others: they are not remembered.
    #[cold]
    pub(super) fn register_new<T: DdsType>(
        &self,
        core: &mut WriterCore,
        source: &Source<'_, T>,
        hash: Option<[u8; 16]>,
    ) -> Result<()> {
        let Some(hash) = hash else { return Ok(()) };
        let named = match source {
            Source::Typed(sample) | Source::Pieces(sample, _) | Source::Loan(sample, ..) => {
                Some(self.named(*sample)?)
            }
            // Only its key was needed so far: what else is wrong with it, its readers say.
            Source::Serialized(payload) => {
                weir_cdr::from_payload::<T>(payload).ok().and_then(|sample| self.named(&sample).ok())
            }
            // Disposing an instance does not unregister it.
            Source::End(ending) if ending.kind == ChangeKind::Disposed => {
                Some((ending.handle, ending.key.payload.clone()))
            }
            Source::End(_) => None,
        };
        core.register_instance(hash).map_err(|refused| self.refusal(refused))?;
        let Some((handle, payload)) = named.filter(|(_, payload)| payload.len() <= KEY_BYTES_MAX) else {
            return Ok(());
        };
        let mut registered = self.registered.lock();
        registered.insert(handle, InstanceKey { hash, payload });
        core.ask_for_new_instances(self.asks_for_new(registered.len()));
        Ok(())
    }

    /// Returns the handle of a sample's instance, and the payload that holds its key.
    fn named<T: DdsType>(&self, sample: &T) -> Result<(InstanceHandle, Box<[u8]>)> {
        let payload = weir_cdr::key_payload(sample, self.encoding)?;
        Ok((InstanceHandle(instance_of(sample)?), payload.into_boxed_slice()))
    }
}

/// Longest payload of a key that is remembered without a registration by the application.
const KEY_BYTES_MAX: usize = 1024;
