#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# mpirun.sh MPIRUN RANKS COMMAND... - runs a command with so many ranks on this machine, even with fewer
# cores and as root, with Open MPI or MPICH.  It is stopped after two minutes if it hangs.
set -uo pipefail
mpirun=$1 ranks=$2
shift 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_btl=self,vader,tcp OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_plm_rsh_agent=false OMPI_MCA_hwloc_base_binding_policy=none
export HYDRA_LAUNCHER=fork
exec timeout 120 "$mpirun" -n "$ranks" "$@"
