//! Joins: a database of films whose rows are skewed and tied to each other, and queries that join
//! 4 to 14 of its 22 tables.
//!
//! Schema and queries are of the kind that "How good are query optimizers, really?" (Leis and
//! others, 2015) measures with; data and predicates are made here. What makes them hard is what an
//! optimizer that takes columns for independent, and values for equally frequent, gets wrong:
//!
//! ```text
//!   fame       a film that has a large cast has many keywords, companies, votes and links as well
//!   country    a film's companies, people, languages and release dates are of its country, mostly
//!   genre      a film's keywords and some of its countries follow from it; animation has voices
//!   year       colour, the kinds that there were, and the words for distribution follow from it
//!   gender     decides between actor and actress
//!   ranks      people, companies, keywords and series are chosen by Zipf's law
//! ```
//!
//! What refers to what: `title` is in the middle; `cast_info`, `movie_company`, `movie_keyword`,
//! `movie_info`, `movie_rating`, `movie_link`, `aka_title` and `complete_cast` refer to it, and to
//! `person`, `company`, `keyword` and to small tables of types.

mod words;

use std::ops::Range;

use fastrand::Rng;

use super::data::{Value, pick, row_random};
use super::{Query, Row, Suite, Table, read_queries, read_statements};
use words::{
    COMPANY_KINDS, COMPANY_TYPES, COMPANY_WORDS, COMPLETIONS, COUNTRIES, FAMILIES, GENRES,
    INFO_TYPES, KINDS, LINKS, MEN, ROLES, TITLE_ADJECTIVES, TITLE_NOUNS, WOMEN,
};

/// Every so many films one is a series.
const SERIES_GAP: u64 = 12;
/// Where the kinds are.
const SERIES: usize = 0;
const EPISODE: usize = 1;
const MOVIE: usize = 2;
const VIDEO_GAME: usize = 5;
/// Where a genre is that has voices.
const ANIMATION: usize = 7;
/// The most that a film can be known.
const FAME_MAX: f64 = 12.0;
const LAST_YEAR: i64 = 2020;
/// The keyword of films that follow others.
const SEQUEL: u64 = 1;
/// A prime above every number of rows: ids that are spread by it have nothing to do with ranks.
const SPREAD: u64 = 2_147_483_647;

/// The database at a scale.
pub struct Joins {
    seed: u64,
    titles: u64,
    people: Ranks,
    companies: Ranks,
    keywords: u64,
    role_names: u64,
}

/// People or companies, ranked within each country: those of the first country come first.
struct Ranks {
    all: u64,
    /// Where the ranks of each country end.
    ends: Vec<u64>,
}

/// What a film's rows have in common.
struct Film {
    id: u64,
    kind: usize,
    genre: usize,
    country: usize,
    year: i64,
    series: Option<u64>,
    /// From 1: how known it is, by a power law.
    fame: f64,
}

impl Joins {
    /// At a scale, of which 1 is some 11 million rows.
    pub fn new(scale: f64, seed: u64) -> Self {
        let scaled = |rows: f64, least: u64| ((rows * scale).round() as u64).max(least);
        Self {
            seed,
            titles: scaled(500_000.0, 240),
            people: Ranks::of(scaled(600_000.0, 400)),
            companies: Ranks::of(scaled(40_000.0, 100)),
            keywords: scaled(25_000.0, 200),
            role_names: scaled(400_000.0, 200),
        }
    }

    fn random(&self, table: &str, row: u64) -> Rng {
        row_random(self.seed, table, row)
    }

    fn film(&self, id: u64) -> Film {
        let random = &mut self.random("film", id);
        let chance = random.f64();
        let kind = if id.is_multiple_of(SERIES_GAP) {
            SERIES
        } else {
            kind_at(random.u32(0..100))
        };
        let mut film = Film {
            id,
            kind,
            genre: zipf(random, GENRES.len() as u64) as usize,
            country: zipf(random, COUNTRIES.len() as u64) as usize,
            year: LAST_YEAR - (110.0 * random.f64().powf(2.2)) as i64,
            series: None,
            fame: (1.0 - chance).powf(-0.6).min(FAME_MAX),
        };
        if random.u32(0..10) < 3 {
            film.country = film.genre * 7 % COUNTRIES.len();
        }
        match kind {
            EPISODE => {
                let rank = zipf(random, self.titles / SERIES_GAP);
                let series = self.film((rank + 1) * SERIES_GAP);
                film.genre = series.genre;
                film.country = series.country;
                film.year = (series.year + random.i64(0..8)).min(LAST_YEAR);
                film.series = Some(series.id);
                film.fame = (0.5 * film.fame).max(1.0);
            }
            VIDEO_GAME => film.year = LAST_YEAR - random.i64(0..40),
            SERIES => film.year = LAST_YEAR - random.i64(0..65),
            _ => {}
        }
        film
    }

    fn films(&self) -> impl Iterator<Item = Film> {
        (1..=self.titles).map(|id| self.film(id))
    }

    fn title(&self, film: &Film) -> Row {
        let random = &mut self.random("title", film.id);
        let mut title = title_words(random);
        if film.fame > 4.0 && random.bool() {
            title += &format!(" {}", random.u32(2..5));
        }
        let year = match random.u32(0..100) {
            0..3 => Value::Null,
            _ => Value::Int(film.year),
        };
        let season = |_| random.u64(1..=9).into();
        vec![
            film.id.into(),
            title.into(),
            (film.kind as u64 + 1).into(),
            year,
            film.series.map_or(Value::Null, Value::from),
            film.series.map_or(Value::Null, season),
        ]
    }

    /// A person by rank; the first of each country are in most films.
    fn person(&self, rank: u64) -> Row {
        let random = &mut self.random("person", rank);
        let first = match is_man(rank) {
            true => pick(random, &MEN),
            false => pick(random, &WOMEN),
        };
        let family = FAMILIES[zipf(random, FAMILIES.len() as u64) as usize];
        let gender = match random.u32(0..100) {
            0..5 => Value::Null,
            _ => if is_man(rank) { "m" } else { "f" }.into(),
        };
        let country = match random.u32(0..10) {
            0 => Value::Null,
            _ => (self.people.country_of(rank) as u64 + 1).into(),
        };
        vec![
            self.people.id(rank).into(),
            format!("{family}, {first}").into(),
            gender,
            country,
        ]
    }

    fn company(&self, rank: u64) -> Row {
        let random = &mut self.random("company", rank);
        let word = COMPANY_WORDS[zipf(random, COMPANY_WORDS.len() as u64) as usize];
        let kind = pick(random, &COMPANY_KINDS);
        let country = match random.u32(0..20) {
            0 => Value::Null,
            _ => (self.companies.country_of(rank) as u64 + 1).into(),
        };
        vec![
            self.companies.id(rank).into(),
            format!("{word} {kind} {rank}").into(),
            country,
        ]
    }

    /// Keywords of a genre are next to each other, the frequent ones first.
    fn keyword(&self, id: u64) -> Row {
        let (genre, place) = self.genre_of(id);
        let (_, word) = GENRES[genre];
        let text = match (id, place) {
            (SEQUEL, _) => "sequel".to_owned(),
            (_, 0) => word.to_owned(),
            _ => format!("{word}-{place}"),
        };
        vec![id.into(), text.into()]
    }

    /// A keyword's genre, and its place among those of the genre.
    fn genre_of(&self, keyword: u64) -> (usize, u64) {
        let each = self.keywords.div_ceil(GENRES.len() as u64);
        // The first one belongs to none.
        let place = (keyword + each - 1 - SEQUEL) % each;
        let genre = (keyword.max(SEQUEL + 1) - 1 - SEQUEL) / each;
        (genre as usize % GENRES.len(), place)
    }

    fn keyword_for(&self, random: &mut Rng, genre: usize) -> u64 {
        let each = self.keywords.div_ceil(GENRES.len() as u64);
        (genre as u64 * each + zipf(random, each) + 1 + SEQUEL).min(self.keywords)
    }

    fn cast(&self, film: &Film) -> Vec<Row> {
        let random = &mut self.random("cast_info", film.id);
        let count = scaled_count(random, 3.0 * film.fame);
        let member = |billing: u64| {
            let rank = self.people.for_film(random, film);
            let acts = random.u32(0..10) < 6;
            let role = match acts {
                true => usize::from(!is_man(rank)),
                false => 2 + zipf(random, ROLES.len() as u64 - 2) as usize,
            };
            let name = match acts && random.u32(0..100) < 85 {
                true => (zipf(random, self.role_names) + 1).into(),
                false => Value::Null,
            };
            vec![
                self.people.id(rank).into(),
                film.id.into(),
                name,
                cast_note(random, role, film),
                if acts { billing.into() } else { Value::Null },
                (role as u64 + 1).into(),
            ]
        };
        (1..=count).map(member).collect()
    }

    fn movie_companies(&self, film: &Film) -> Vec<Row> {
        let random = &mut self.random("movie_company", film.id);
        let count = scaled_count(random, 0.8 + 0.4 * film.fame);
        let company = |_| {
            let rank = self.companies.for_film(random, film);
            let kind = zipf(random, COMPANY_TYPES.len() as u64);
            let country = COUNTRIES[self.companies.country_of(rank)].1;
            let year = film.year + random.i64(0..3);
            let how = match (film.kind, year) {
                (MOVIE, ..1985) => "theatrical",
                (MOVIE, _) => pick(random, &["theatrical", "DVD", "VHS"]),
                (SERIES | EPISODE, _) => "TV",
                (_, ..1998) => "VHS",
                _ => "DVD",
            };
            let note = match kind {
                1 => format!("({year}) ({country}) ({how})").into(),
                0 if random.u32(0..4) == 0 => {
                    pick(random, &["(presents)", "(co-production)"]).into()
                }
                _ => Value::Null,
            };
            vec![
                film.id.into(),
                self.companies.id(rank).into(),
                (kind + 1).into(),
                note,
            ]
        };
        (0..count).map(company).collect()
    }

    fn movie_keywords(&self, film: &Film) -> Vec<Row> {
        let random = &mut self.random("movie_keyword", film.id);
        let count = scaled_count(random, 1.5 * film.fame - 0.8);
        let keyword = |place: u64| {
            let keyword = if place == 0 && film.follows_others() {
                SEQUEL
            } else if random.u32(0..5) == 0 {
                let other = zipf(random, GENRES.len() as u64) as usize;
                self.keyword_for(random, other)
            } else {
                self.keyword_for(random, film.genre)
            };
            vec![film.id.into(), keyword.into()]
        };
        (0..count).map(keyword).collect()
    }

    fn movie_infos(&self, film: &Film) -> Vec<Row> {
        let random = &mut self.random("movie_info", film.id);
        let (_, country, language) = COUNTRIES[film.country];
        let mut said = vec![
            ("genres", GENRES[film.genre].0.to_owned()),
            ("countries", country.to_owned()),
            ("languages", language.to_owned()),
        ];
        if random.u32(0..10) < 4 {
            let other = GENRES[zipf(random, GENRES.len() as u64) as usize].0;
            said.push(("genres", other.to_owned()));
        }
        if random.u32(0..10) == 0 {
            let (_, country, language) = COUNTRIES[zipf(random, COUNTRIES.len() as u64) as usize];
            said.push(("countries", country.to_owned()));
            said.push(("languages", language.to_owned()));
        }
        let month =
            |random: &mut Rng| pick(random, &["January", "March", "May", "August", "October"]);
        let first = month(random);
        said.push(("release dates", format!("{country}:{first} {}", film.year)));
        for _ in 0..scaled_count(random, 0.7 * film.fame - 0.7) {
            let (_, country, _) = COUNTRIES[zipf(random, COUNTRIES.len() as u64) as usize];
            let (month, year) = (month(random), film.year + random.i64(0..2));
            said.push(("release dates", format!("{country}:{month} {year}")));
        }
        let minutes = match film.kind {
            EPISODE | SERIES => pick(random, &[22, 30, 45, 60]),
            _ => 70 + 5 * random.u32(0..14),
        };
        said.push(("runtimes", minutes.to_string()));
        let has_colour = film.year > 1965 || (film.year > 1935 && random.u32(0..3) == 0);
        let colour = if has_colour {
            "Color"
        } else {
            "Black and White"
        };
        said.push(("color info", colour.to_owned()));
        if film.kind == MOVIE && film.fame > 2.0 {
            let age = random.u32(1..19);
            said.push(("certificates", format!("{country}:{age}")));
            let millions = (film.fame * f64::from(random.u32(1..10))) as u32;
            said.push(("budget", format!("${millions},000,000")));
        }
        let row = |(kind, text): (&str, String)| {
            vec![film.id.into(), info_type(kind).into(), text.into()]
        };
        said.into_iter().map(row).collect()
    }

    fn movie_rating(&self, film: &Film) -> Option<Row> {
        let random = &mut self.random("movie_rating", film.id);
        if film.fame < 1.15 {
            return None;
        }
        let votes = 5.0 + film.fame.powi(3) * (1.0 + 40.0 * random.f64());
        let rating = 450.0 + 25.0 * film.fame + 250.0 * random.f64() - 100.0 * random.f64();
        Some(vec![
            film.id.into(),
            (votes as u64).into(),
            Value::Hundredths(rating as i64),
        ])
    }

    fn movie_links(&self, film: &Film) -> Vec<Row> {
        let random = &mut self.random("movie_link", film.id);
        if !film.follows_others() {
            return Vec::new();
        }
        let count = scaled_count(random, 0.4 * film.fame);
        let link = |_| {
            let linked = spread(zipf(random, self.titles), self.titles);
            let kind = zipf(random, LINKS.len() as u64) + 1;
            vec![film.id.into(), linked.into(), kind.into()]
        };
        (0..count).map(link).collect()
    }

    fn aka_titles(&self, film: &Film) -> Vec<Row> {
        let random = &mut self.random("aka_title", film.id);
        let count = scaled_count(random, 0.4 * film.fame - 0.4);
        let title = |_| vec![film.id.into(), title_words(random).into()];
        (0..count).map(title).collect()
    }

    fn complete_casts(&self, film: &Film) -> Vec<Row> {
        let random = &mut self.random("complete_cast", film.id);
        if film.fame < 2.0 {
            return Vec::new();
        }
        let subjects = random.u64(1..=2);
        let subject = |subject: u64| {
            let status = random.u64(3..=4);
            vec![film.id.into(), subject.into(), status.into()]
        };
        (1..=subjects).map(subject).collect()
    }

    /// How known a person is: from 0 for most to some dozens for the first of a country.
    fn renown(&self, rank: u64) -> f64 {
        let range = self.people.of_country(self.people.country_of(rank));
        let place = (rank - range.start + 1) as f64;
        let below = (range.end - range.start) as f64 / place;
        below.ln()
    }

    fn aka_names(&self, rank: u64) -> Vec<Row> {
        let random = &mut self.random("aka_name", rank);
        let name = |_| {
            let family = pick(random, &FAMILIES);
            let first = pick(random, if is_man(rank) { &MEN } else { &WOMEN });
            let name = format!("{first} {family}");
            vec![self.people.id(rank).into(), name.into()]
        };
        let count = scaled_count(&mut self.random("aka_names", rank), 0.5 * self.renown(rank));
        (0..count).map(name).collect()
    }

    fn person_infos(&self, rank: u64) -> Vec<Row> {
        let random = &mut self.random("person_info", rank);
        let count = scaled_count(&mut self.random("person_infos", rank), self.renown(rank));
        let row = |place: u64| {
            let (kind, text) = match place {
                0 => ("birth date", format!("{}", random.u32(1890..2000))),
                1 => ("height", format!("{} cm", random.u32(150..200))),
                2 => (
                    "mini biography",
                    format!("Volker Boehm {}", random.u32(0..9)),
                ),
                _ => {
                    let kind = pick(random, &["trivia", "trivia", "quotes", "spouse"]);
                    (kind, format!("{} {place}", pick(random, &FAMILIES)))
                }
            };
            vec![
                self.people.id(rank).into(),
                info_type(kind).into(),
                text.into(),
            ]
        };
        (0..count).map(row).collect()
    }

    /// A table whose rows belong to films, with ids of their own.
    fn of_films<'a, R: IntoIterator<Item = Row> + 'a>(
        &'a self,
        name: &'static str,
        rows: impl Fn(&Self, &Film) -> R + 'a,
    ) -> Table<'a> {
        let rows = self.films().flat_map(move |film| rows(self, &film));
        Table::new(name, with_ids(rows))
    }

    /// The same of people.
    fn of_people<'a>(
        &'a self,
        name: &'static str,
        rows: impl Fn(&Self, u64) -> Vec<Row> + 'a,
    ) -> Table<'a> {
        let rows = (0..self.people.all).flat_map(move |rank| rows(self, rank));
        Table::new(name, with_ids(rows))
    }
}

impl Ranks {
    /// Countries have shares as Zipf's law has them: 1, 1/2, 1/3, …
    fn of(all: u64) -> Self {
        let shares =
            |countries: usize| -> f64 { (1..=countries).map(|one| 1.0 / one as f64).sum() };
        let total = shares(COUNTRIES.len());
        let end = |countries: usize| (shares(countries) / total * all as f64).round() as u64;
        let ends = (1..=COUNTRIES.len()).map(end).collect();
        Self { all, ends }
    }

    /// Those of a country.
    fn of_country(&self, country: usize) -> Range<u64> {
        let start = country.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[country]
    }

    /// The country of one.
    fn country_of(&self, rank: u64) -> usize {
        self.ends.partition_point(|&end| end <= rank)
    }

    /// The id of one.
    fn id(&self, rank: u64) -> u64 {
        spread(rank, self.all)
    }

    /// One by Zipf's law: of the film's country, mostly.
    fn for_film(&self, random: &mut Rng, film: &Film) -> u64 {
        let country = match random.u32(0..4) {
            0 => zipf(random, COUNTRIES.len() as u64) as usize,
            _ => film.country,
        };
        let range = self.of_country(country);
        range.start + zipf(random, range.end - range.start)
    }
}

impl Film {
    fn follows_others(&self) -> bool {
        self.fame > 3.5 && self.kind != EPISODE
    }
}

/// A kind that is no series, by a number below 100.
fn kind_at(mut chance: u32) -> usize {
    for (kind, (_, share)) in KINDS.iter().enumerate() {
        match chance.checked_sub(*share) {
            Some(rest) => chance = rest,
            None => return kind,
        }
    }
    MOVIE
}

fn cast_note(random: &mut Rng, role: usize, film: &Film) -> Value {
    let chance = random.u32(0..100);
    let note = match ROLES[role] {
        "actor" | "actress" if film.genre == ANIMATION && chance < 85 => "(voice)",
        "actor" | "actress" if chance < 3 => "(voice)",
        "actor" | "actress" if chance < 15 => "(uncredited)",
        "producer" if chance < 40 => "(executive producer)",
        "producer" if chance < 90 => "(producer)",
        "writer" if chance < 30 => "(screenplay)",
        "writer" if chance < 50 => "(novel)",
        "writer" if chance < 80 => "(written by)",
        _ => return Value::Null,
    };
    note.into()
}

fn title_words(random: &mut Rng) -> String {
    let noun = TITLE_NOUNS[zipf(random, TITLE_NOUNS.len() as u64) as usize];
    let adjective = pick(random, &TITLE_ADJECTIVES);
    match random.u32(0..3) {
        0 => format!("The {noun}"),
        1 => format!("{adjective} {noun}"),
        _ => format!("The {adjective} {noun}"),
    }
}

fn is_man(rank: u64) -> bool {
    rank % 5 < 3
}

/// An id for a rank from 0: every id up to `all` once.
fn spread(rank: u64, all: u64) -> u64 {
    rank * SPREAD % all + 1
}

/// The id of a kind of information.
fn info_type(name: &str) -> u64 {
    let place = INFO_TYPES.iter().position(|kind| *kind == name);
    place.unwrap_or(0) as u64 + 1
}

/// A number below `count`, of which each is about as frequent as its place's inverse: Zipf's law,
/// by the logarithm of its continuous form.
fn zipf(random: &mut Rng, count: u64) -> u64 {
    let place = ((count + 1) as f64).powf(random.f64());
    (place as u64).clamp(1, count.max(1)) - 1
}

/// So many on average: the fraction decides between two numbers.
fn scaled_count(random: &mut Rng, mean: f64) -> u64 {
    (mean.max(0.0) + random.f64()) as u64
}

fn with_ids(rows: impl Iterator<Item = Row>) -> impl Iterator<Item = Row> {
    let with_id = |(id, mut row): (u64, Row)| {
        row.insert(0, id.into());
        row
    };
    (1..).zip(rows).map(with_id)
}

/// A table of texts with ids from 1.
fn of_texts(name: &'static str, texts: impl Iterator<Item = &'static str>) -> Table<'static> {
    let texts: Vec<Row> = texts.map(|text| vec![text.into()]).collect();
    Table::new(name, with_ids(texts.into_iter()))
}

impl Suite for Joins {
    fn name(&self) -> &'static str {
        "joins"
    }

    fn definitions(&self) -> Vec<&'static str> {
        read_statements(include_str!("schema.sql"))
    }

    fn tables(&self) -> Vec<Table<'_>> {
        let countries = COUNTRIES
            .iter()
            .map(|(code, name, _)| vec![(*code).into(), (*name).into()]);
        let role_name = |id: u64| {
            let random = &mut self.random("role_name", id);
            let first = if random.bool() { &MEN } else { &WOMEN };
            let name = format!("{} {}", pick(random, first), pick(random, &FAMILIES));
            vec![id.into(), name.into()]
        };
        vec![
            of_texts("kind_type", KINDS.into_iter().map(|(kind, _)| kind)),
            of_texts("role_type", ROLES.into_iter()),
            of_texts("company_type", COMPANY_TYPES.into_iter()),
            of_texts("info_type", INFO_TYPES.into_iter()),
            of_texts("link_type", LINKS.into_iter()),
            of_texts("completion_type", COMPLETIONS.into_iter()),
            Table::new("country", with_ids(countries)),
            Table::new("title", self.films().map(|film| self.title(&film))),
            Table::new("person", (0..self.people.all).map(|rank| self.person(rank))),
            Table::new(
                "company",
                (0..self.companies.all).map(|rank| self.company(rank)),
            ),
            Table::new("keyword", (1..=self.keywords).map(|id| self.keyword(id))),
            Table::new("role_name", (1..=self.role_names).map(role_name)),
            self.of_films("cast_info", Self::cast),
            self.of_films("movie_company", Self::movie_companies),
            self.of_films("movie_keyword", Self::movie_keywords),
            self.of_films("movie_info", Self::movie_infos),
            self.of_films("movie_rating", Self::movie_rating),
            self.of_films("movie_link", Self::movie_links),
            self.of_films("aka_title", Self::aka_titles),
            self.of_people("aka_name", Self::aka_names),
            self.of_people("person_info", Self::person_infos),
            self.of_films("complete_cast", Self::complete_casts),
        ]
    }

    fn queries(&self) -> Vec<Query> {
        read_queries(include_str!("queries.sql"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    fn rows(suite: &Joins, name: &str) -> Vec<Row> {
        let tables = suite.tables().into_iter();
        let table = tables.filter(|table| table.name == name);
        table.flat_map(|table| table.rows).collect()
    }

    fn int(value: &Value) -> Option<i64> {
        match value {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    fn text(value: &Value) -> &str {
        match value {
            Value::Text(text) => text,
            _ => "",
        }
    }

    #[test]
    fn ids_are_unique_and_references_have_rows() {
        let suite = Joins::new(0.002, 1);
        let mut ids: HashMap<&str, HashSet<i64>> = HashMap::new();
        let mut tables = HashMap::new();
        for table in suite.tables() {
            let rows: Vec<Row> = table.rows.collect();
            let of_table: HashSet<i64> = rows.iter().filter_map(|row| int(&row[0])).collect();
            assert_eq!(of_table.len(), rows.len(), "{}", table.name);
            ids.insert(table.name, of_table);
            tables.insert(table.name, rows);
        }
        assert_eq!(tables.len(), 22);
        for (table, column, parent) in [
            ("title", 2, "kind_type"),
            ("title", 4, "title"),
            ("person", 3, "country"),
            ("company", 2, "country"),
            ("cast_info", 1, "person"),
            ("cast_info", 2, "title"),
            ("cast_info", 3, "role_name"),
            ("cast_info", 6, "role_type"),
            ("movie_company", 2, "company"),
            ("movie_company", 3, "company_type"),
            ("movie_keyword", 2, "keyword"),
            ("movie_info", 2, "info_type"),
            ("movie_link", 2, "title"),
            ("movie_link", 3, "link_type"),
            ("aka_name", 1, "person"),
            ("person_info", 1, "person"),
            ("person_info", 2, "info_type"),
            ("complete_cast", 2, "completion_type"),
            ("complete_cast", 3, "completion_type"),
        ] {
            assert!(!tables[table].is_empty(), "{table}");
            for row in &tables[table] {
                let found = int(&row[column]);
                assert!(
                    found.is_none_or(|id| ids[parent].contains(&id)),
                    "{table} {row:?}"
                );
            }
        }
    }

    #[test]
    fn rows_depend_on_the_seed_alone() {
        let (one, same, other) = (
            Joins::new(0.001, 1),
            Joins::new(0.001, 1),
            Joins::new(0.001, 2),
        );
        for name in ["title", "cast_info", "movie_info", "person_info"] {
            assert_eq!(rows(&one, name), rows(&same, name), "{name}");
            assert_ne!(rows(&one, name), rows(&other, name), "{name}");
        }
    }

    #[test]
    fn few_values_are_most_of_a_column() {
        let suite = Joins::new(0.01, 1);
        for (table, column) in [("cast_info", 1), ("movie_company", 2), ("movie_keyword", 2)] {
            let mut counts: HashMap<i64, usize> = HashMap::new();
            let rows = rows(&suite, table);
            for id in rows.iter().filter_map(|row| int(&row[column])) {
                *counts.entry(id).or_default() += 1;
            }
            let mut counts: Vec<usize> = counts.into_values().collect();
            counts.sort_unstable_by(|one, other| other.cmp(one));
            let tenth: usize = counts[..counts.len() / 10].iter().sum();
            assert!(
                tenth * 10 > rows.len() * 3,
                "{table}: {tenth} of {}",
                rows.len()
            );
        }
    }

    #[test]
    fn columns_of_different_tables_go_together() {
        let suite = Joins::new(0.01, 1);
        let genders: HashMap<Option<i64>, Row> = rows(&suite, "person")
            .into_iter()
            .map(|row| (int(&row[0]), row))
            .collect();
        let mut cast_sizes: HashMap<Option<i64>, usize> = HashMap::new();
        for row in rows(&suite, "cast_info") {
            *cast_sizes.entry(int(&row[2])).or_default() += 1;
            let gender = text(&genders[&int(&row[1])][2]);
            match int(&row[6]) {
                Some(1) => assert_ne!(gender, "f"),
                Some(2) => assert_ne!(gender, "m"),
                _ => {}
            }
        }
        // Films with keywords have larger casts than films without.
        let with_keywords: HashSet<_> = rows(&suite, "movie_keyword")
            .iter()
            .map(|row| int(&row[1]))
            .collect();
        let mean = |has: bool| {
            let films = (1..=suite.titles as i64).map(Some);
            let sizes: Vec<usize> = films
                .filter(|id| with_keywords.contains(id) == has)
                .map(|id| cast_sizes.get(&id).copied().unwrap_or(0))
                .collect();
            sizes.iter().sum::<usize>() as f64 / sizes.len() as f64
        };
        assert!(
            mean(true) > 1.5 * mean(false),
            "{} {}",
            mean(true),
            mean(false)
        );
        // What is said of a film's country and language is of one country, mostly.
        let infos = rows(&suite, "movie_info");
        let said = |kind: &str| -> HashMap<Option<i64>, &str> {
            let of_kind = |row: &&Row| int(&row[2]) == Some(info_type(kind) as i64);
            let pairs = infos.iter().filter(of_kind);
            pairs.map(|row| (int(&row[1]), text(&row[3]))).collect()
        };
        let (countries, languages) = (said("countries"), said("languages"));
        let french = countries
            .iter()
            .filter(|(_, country)| **country == "France");
        assert!(french.clone().count() > 20);
        for (film, _) in french {
            assert_eq!(languages[film], "French");
        }
    }

    #[test]
    fn every_variant_of_every_query_is_whole() {
        let queries = Joins::new(0.001, 1).queries();
        assert_eq!(queries.len(), 92);
        let names: HashSet<&str> = queries.iter().map(|query| &*query.name).collect();
        assert_eq!(names.len(), queries.len());
        for query in &queries {
            assert!(
                !query.text.contains(['{', ';']),
                "{}: {}",
                query.name,
                query.text
            );
        }
    }
}
