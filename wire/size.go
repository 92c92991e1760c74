package wire

import "github.com/weirhq/weir/apikey"

// tooMany is what [RequestSize] returns for counts that no datagram holds.
const tooMany = 1 << 30

// RequestSize returns the length in bytes of the datagram that [Credential.AppendRequest] would
// build in mode a and layout l with that many guards, resources and bytes of label. It may exceed
// [MaxDatagram]: then the request cannot be sent. Counts below 0 or over 65535 give a number over
// MaxDatagram.
func RequestSize(a apikey.Auth, l Layout, guards, resources, label int) int {
	const most = 1<<16 - 1
	if uint(guards) > most || uint(resources) > most || uint(label) > most {
		return tooMany
	}
	return headerSize + authSize(a) + pduSize + countsSize +
		guards*l.guardSize() + resources*resourceSize + labelSize(label)
}

// reportSize returns the length of a report's datagram with n observations, n at most 65535.
func reportSize(a apikey.Auth, l Layout, n int) int {
	return headerSize + authSize(a) + pduSize + countsSize + n*l.observationSize()
}

// MaxObservations returns how many observations one report datagram holds in mode a and layout l.
func MaxObservations(a apikey.Auth, l Layout) int {
	return (MaxDatagram - reportSize(a, l, 0)) / l.observationSize()
}
