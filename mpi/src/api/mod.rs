//! The table of the interface: a file for each chapter of the standard.

mod attribute;
mod collective;
mod comm;
mod datatype;
mod environment;
mod errhandler;
mod file;
mod group;
mod info;
mod integer;
mod op;
mod p2p;
mod process;
mod request;
mod session;
mod setup;
mod tool;
mod topology;
mod win;
