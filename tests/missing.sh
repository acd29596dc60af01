#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# missing.sh PACKAGE... - replaces a test that could not be built: fails and says why.
echo "not built, install: $*"
exit 1
