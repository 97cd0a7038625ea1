// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import "time"

// Patience is how long a test waits for another process before it gives up.
// It is far more than a busy machine needs: a test that passes never waits for
// so long.
const Patience = time.Minute
