// Package bad imports a module that its room does not list.
package bad

import _ "github.com/miekg/dns"
