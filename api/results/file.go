package results

import "time"

// File is a file that is kept as a whole.
type File struct {
	Body []byte
	Tag  string // strong entity tag
	At   time.Time
}

// LastFile returns the last file with a key, and its version; nil: none is kept.
func (s *Service) LastFile(key string) (last *File, version string) {
	found, madeFrom := s.cache.LastValue(key)
	last, _ = found.(*File)
	version, _ = madeFrom.(string)
	return last, version
}

// StoreFile keeps a file, unless there is no cache.
func (s *Service) StoreFile(key, version string, file *File) {
	if s.Age > 0 {
		s.cache.StoreValue(key, version, file, int64(len(key)+len(version)+len(file.Body)))
	}
}
