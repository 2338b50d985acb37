# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Spack's recipe. In a repository of yours (spack repo create), as packages/verve/package.py.
# It builds a clone or an unpacked archive of verve:
#     spack dev-build -d FOLDER verve@0.2.0
import os

from spack.package import *

try:
    from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
except ImportError:
    pass  # Before Spack 1.0, spack.package has it.


class Verve(AutotoolsPackage):
    """libfabric provider with reliable-datagram endpoints (FI_EP_RDM) directly on libibverbs
    queue pairs: InfiniBand, RoCE and soft-RoCE."""

    license("BSD-2-Clause OR GPL-2.0-only")

    # No place to download it from is known yet: dev-build needs none.
    has_code = True

    version("0.2.0")

    depends_on("c", type="build")
    depends_on("autoconf", type="build")
    depends_on("automake@1.16:", type="build")
    depends_on("m4", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("pandoc", type="build")
    depends_on("libatomic-ops", type="build")
    depends_on("uthash", type="build")
    depends_on("libfabric@1.17:", type=("build", "link", "run"))
    depends_on("rdma-core@44:")
    depends_on("libnl")
    depends_on("libsodium")

    def autoreconf(self, spec, prefix):
        if not os.path.exists("configure"):
            Executable("./autogen.sh")()

    def configure_args(self):
        # The MPI programs are for the project's own tests.
        return ["MPICC="]

    def setup_run_environment(self, env):
        # The variable takes the place of libfabric's own folder, which therefore goes along. The
        # call that comes last prepends what comes first.
        env.prepend_path("FI_PROVIDER_PATH", self.spec["libfabric"].prefix.lib.libfabric)
        env.prepend_path("FI_PROVIDER_PATH", self.prefix.lib.libfabric)

    def setup_dependent_run_environment(self, env, dependent_spec):
        self.setup_run_environment(env)
