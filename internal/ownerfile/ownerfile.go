// Package ownerfile opens files that only their owner may use: on Unix by mode bits, on Windows by
// an access control list.
//
//	f, err := ownerfile.Open("token", os.O_WRONLY|os.O_CREATE, 0o600)
package ownerfile
