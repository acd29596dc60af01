#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# missing.sh PACKAGE... - stands in for a test that could not be built, so that it fails and says why.
echo "not built, install: $*"
exit 1
