// Package roundtrip measures round trips from this machine to r-servers.
//
// [Run] asks every address of every server by itself, at an even rate, how full a bucket
// is that nobody uses, so that no token is consumed and nothing is created. Each question
// is one datagram with an identity of its own, and leaves when its time has come, whether
// those before it were answered or not: a server that pauses is asked all the while, and
// the pause is seen by as many questions as it lasted. An answer is matched to the one
// datagram that it can be for, so no repeat is taken for a round trip.
//
// A [Result] has what came of it. [WriteTable] shows it to a person, and [WriteLog] writes
// it as an HDR histogram log.
package roundtrip
