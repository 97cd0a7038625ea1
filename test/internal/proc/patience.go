// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import "time"

// Patience is how long a test waits for another process before it gives up.
// It is far longer than a busy machine needs: a passing test never waits this
// long.
const Patience = time.Minute
