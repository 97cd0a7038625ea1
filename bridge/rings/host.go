// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package rings

import (
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// hostName returns the host name of the agents that this program reports: host.name in
// OTEL_RESOURCE_ATTRIBUTES, or else the system's host name. Invalid UTF-8 is replaced, as
// in the receiver, because exporters reject a whole batch that contains it.
func hostName() (string, error) {
	name, _ := resource.Environment().Set().Value(semconv.HostName)
	host := name.AsString()
	if host == "" {
		var err error
		if host, err = os.Hostname(); err != nil {
			return "", fmt.Errorf("determine the host name (set host.name in OTEL_RESOURCE_ATTRIBUTES instead): %w", err)
		}
	}
	return strings.ToValidUTF8(host, "\uFFFD"), nil
}
