// Package bad knows a package below net.
package bad

import "net/http"

const get = http.MethodGet
