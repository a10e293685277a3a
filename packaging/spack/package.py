# SPDX-License-Identifier: (Apache-2.0 OR MIT)
"""Recipe for Spack. Copy this folder to `packages/pelago` of a Spack repository, or build a checkout by
`spack dev-build pelago@main`; it names no place to download from."""

from spack.package import *


class Pelago(Package):
    """One-sided communication for parallel programs: a runtime in Rust with OpenSHMEM 1.6 and MPI 5.0."""

    license("MIT OR Apache-2.0")

    version("main")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("rust@1.88:", type="build")
    depends_on("binutils", type="build")

    provides("mpi@5")

    def install(self, spec, prefix):
        """Builds and installs as `cargo xtask install` does."""
        cargo = which("cargo", required=True)
        cargo("xtask", "install", "--prefix", prefix)

    def setup_run_environment(self, env):
        env.set("MPICC", join_path(self.prefix.bin, "mpicc"))
        env.set("MPICXX", join_path(self.prefix.bin, "mpicxx"))
        env.set("OSHCC", join_path(self.prefix.bin, "oshcc"))

    def setup_dependent_package(self, module, dependent_spec):
        self.spec.mpicc = join_path(self.prefix.bin, "mpicc")
        self.spec.mpicxx = join_path(self.prefix.bin, "mpicxx")

    def setup_dependent_build_environment(self, env, dependent_spec):
        self.setup_run_environment(env)
