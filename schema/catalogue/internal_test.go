package catalogue

// ValidDomain is what apply asks of a website.
var ValidDomain = validDomain
