//! Pod networks; each is a [`crate::runtime::ports::PodNetwork`].
