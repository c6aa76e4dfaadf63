package catalogue

// ValidDomain reports whether a website may have the domain.
var ValidDomain = validDomain
