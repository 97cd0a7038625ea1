// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package lane

// Count is the number of lanes.
const Count = 1 << bits

const bits = 4
