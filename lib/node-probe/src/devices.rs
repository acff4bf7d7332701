//! What interfaces of a node are made of: devices, their drivers, and what of PCI is known of them.

use serde::{Deserialize, Serialize};

use crate::Seen;

/// The devices of a node that are, or were, interfaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Devices {
    /// Interfaces that are devices, or are made of others; virtual functions last.
    pub shown: Vec<Device>,
    /// How many more there are.
    pub left_out: usize,
    /// Network controllers that a driver for programs has, so that they are interfaces no more.
    pub given: Seen<Vec<Given>>,
    /// Whether the kernel lets `vfio` do without an IOMMU.
    pub without_iommu: Seen<WithoutIommu>,
}

/// An interface, by what is below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// Its name.
    pub interface: String,
    /// Its MAC address, where it can be read.
    #[serde(default)]
    pub mac: Option<String>,
    /// The interfaces that it is made of: the one of a VLAN, all of a bond or a bridge.
    #[serde(default)]
    pub lower: Vec<String>,
    /// The device, where it is one.
    #[serde(default)]
    pub hardware: Option<Hardware>,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hardware {
    /// Its driver.
    pub driver: Seen<String>,
    /// Whether it computes checksums of what is sent, as far as it was asked.
    pub checksums: Seen<bool>,
    /// What it is of PCI; nothing where it is on another bus.
    pub function: Seen<Option<Function>>,
}

/// A function of PCI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Function {
    /// `0000:3b:00.0`.
    pub address: String,
    /// Its vendor: `0x8086`.
    pub vendor: Seen<String>,
    /// What it is by its vendor: `0x1572`.
    pub device: Seen<String>,
    /// Whether it is a virtual function of another.
    pub is_virtual: Seen<bool>,
    /// The group in which an IOMMU has it; nothing where none has.
    pub group: Seen<Option<Group>>,
    /// Its own virtual functions; nothing where it can have none.
    pub virtual_functions: Seen<Option<VirtualFunctions>>,
}

/// A group of an IOMMU: what is in it can be given away only together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Its number.
    pub number: String,
    /// How the kernel translates addresses for it: `identity`, `DMA`, `DMA-FQ`.
    pub translation: Seen<String>,
    /// The other functions in it that have a driver.
    pub others: Seen<Vec<Given>>,
}

/// A function that a driver has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// `0000:3b:00.1`.
    pub address: String,
    /// The driver.
    pub driver: String,
}

/// Virtual functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualFunctions {
    /// How many there can be.
    pub most: u32,
    /// How many there are.
    pub now: u32,
}

/// Whether `vfio` may do without an IOMMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WithoutIommu {
    /// It was allowed by its parameter.
    Allowed,
    /// It is loaded, and was not allowed or cannot.
    Refused,
    /// It is not loaded: its parameter is not there yet.
    NotLoaded,
}
