//! What films, people and companies are called, and what is said of films.

/// Countries: code, name, language. The first has most of everything.
pub const COUNTRIES: [(&str, &str, &str); 20] = [
    ("us", "USA", "English"),
    ("gb", "UK", "English"),
    ("in", "India", "Hindi"),
    ("fr", "France", "French"),
    ("de", "Germany", "German"),
    ("jp", "Japan", "Japanese"),
    ("ca", "Canada", "English"),
    ("it", "Italy", "Italian"),
    ("es", "Spain", "Spanish"),
    ("mx", "Mexico", "Spanish"),
    ("br", "Brazil", "Portuguese"),
    ("se", "Sweden", "Swedish"),
    ("dk", "Denmark", "Danish"),
    ("nl", "Netherlands", "Dutch"),
    ("au", "Australia", "English"),
    ("kr", "South Korea", "Korean"),
    ("pl", "Poland", "Polish"),
    ("fi", "Finland", "Finnish"),
    ("bg", "Bulgaria", "Bulgarian"),
    ("is", "Iceland", "Icelandic"),
];

/// Genres, each with the word that its keywords are made of.
pub const GENRES: [(&str, &str); 20] = [
    ("Drama", "family"),
    ("Comedy", "friendship"),
    ("Documentary", "interview"),
    ("Short", "student-film"),
    ("Romance", "love"),
    ("Thriller", "murder"),
    ("Action", "fight"),
    ("Animation", "talking-animal"),
    ("Horror", "blood"),
    ("Crime", "police"),
    ("Adventure", "journey"),
    ("Sci-Fi", "alien"),
    ("Mystery", "secret"),
    ("Fantasy", "magic"),
    ("Music", "singer"),
    ("War", "soldier"),
    ("Western", "cowboy"),
    ("History", "king"),
    ("Biography", "artist"),
    ("Film-Noir", "detective"),
];

/// Kinds of films; how common each is, of a hundred. Every twelfth film is a series instead.
pub const KINDS: [(&str, u32); 7] = [
    ("tv series", 0),
    ("episode", 48),
    ("movie", 30),
    ("video movie", 9),
    ("tv movie", 8),
    ("video game", 2),
    ("tv mini series", 3),
];

/// What people do in films: first those who act, by gender.
pub const ROLES: [&str; 11] = [
    "actor",
    "actress",
    "producer",
    "writer",
    "director",
    "editor",
    "composer",
    "cinematographer",
    "costume designer",
    "production designer",
    "miscellaneous crew",
];

/// What companies do.
pub const COMPANY_TYPES: [&str; 4] = [
    "production companies",
    "distributors",
    "special effects companies",
    "miscellaneous companies",
];

/// How films are tied to each other, the most common first.
pub const LINKS: [&str; 10] = [
    "references",
    "follows",
    "followed by",
    "remake of",
    "remade as",
    "features",
    "spoofs",
    "version of",
    "spin off from",
    "alternate language version of",
];

/// What is said of films and people; rows refer to places in this list.
pub const INFO_TYPES: [&str; 14] = [
    "genres",
    "countries",
    "languages",
    "release dates",
    "runtimes",
    "color info",
    "certificates",
    "budget",
    "birth date",
    "height",
    "mini biography",
    "trivia",
    "quotes",
    "spouse",
];

/// Who a list of people is of, and how much of it there is.
pub const COMPLETIONS: [&str; 4] = ["cast", "crew", "complete", "complete+verified"];

/// First words of titles.
pub const TITLE_ADJECTIVES: [&str; 24] = [
    "Last", "Dark", "Secret", "Silent", "Golden", "Lost", "Red", "Broken", "Long", "Wild",
    "Little", "Final", "Blue", "Hidden", "Perfect", "Empty", "Strange", "Iron", "White", "Bitter",
    "Great", "Burning", "Second", "Frozen",
];

/// Second words of titles.
pub const TITLE_NOUNS: [&str; 32] = [
    "Night", "Man", "House", "River", "Woman", "City", "Heart", "Road", "War", "Dream", "King",
    "Garden", "Island", "Voyage", "Champion", "Murder", "Summer", "Kingdom", "Mirror", "Stranger",
    "Winter", "Bridge", "Shadow", "Wedding", "Money", "Train", "Angel", "Storm", "Freddy",
    "Dragon", "Letter", "Harbour",
];

/// First names of men.
pub const MEN: [&str; 20] = [
    "John", "David", "Michael", "Robert", "James", "Paul", "Peter", "Tim", "George", "Hans",
    "Luis", "Akira", "Raj", "Pierre", "Bert", "Downey", "Oscar", "Sven", "Igor", "Ulf",
];

/// First names of women.
pub const WOMEN: [&str; 20] = [
    "Maria", "Anna", "Laura", "Jennifer", "Angela", "Susan", "Emma", "Angelina", "Yoko", "Priya",
    "Claire", "Ingrid", "Sofia", "Olga", "Carmen", "Bella", "Zoe", "Astrid", "Xenia", "Ursula",
];

/// Last names.
pub const FAMILIES: [&str; 40] = [
    "Smith",
    "Brown",
    "Miller",
    "Garcia",
    "Kumar",
    "Martin",
    "Schmidt",
    "Tanaka",
    "Rossi",
    "Lopez",
    "Silva",
    "Johansson",
    "Hansen",
    "de Vries",
    "Wilson",
    "Kim",
    "Nowak",
    "Virtanen",
    "Ivanov",
    "Jonsdottir",
    "Baker",
    "Cooper",
    "Dubois",
    "Evans",
    "Fischer",
    "Gupta",
    "Hill",
    "Ito",
    "Jones",
    "Keller",
    "Lee",
    "Moore",
    "Nguyen",
    "Olsen",
    "Park",
    "Quinn",
    "Roy",
    "Singh",
    "Taylor",
    "Young",
];

/// First words of companies' names.
pub const COMPANY_WORDS: [&str; 20] = [
    "Universal",
    "Northern",
    "Lion",
    "Star",
    "Warner",
    "Paramount",
    "Metro",
    "Pioneer",
    "Polygram",
    "Atlas",
    "Crown",
    "Lakeside",
    "Orion",
    "Summit",
    "Columbia",
    "Gaumont",
    "Studio",
    "Sunrise",
    "Castle",
    "Delta",
];

/// Last words of companies' names.
pub const COMPANY_KINDS: [&str; 6] = [
    "Film",
    "Pictures",
    "Television",
    "Entertainment",
    "Productions",
    "Studios",
];
