//! The rules of languages, in the form that [`tailoring`](super::tailoring) reads.
//!
//! Those of the collations that MySQL bases on Unicode 4.0.0 name each letter, as MySQL's do; those
//! of Unicode 9.0.0 are CLDR's (version 30), closed over composition.

use super::tailoring::Tailoring;
use std::sync::LazyLock;

macro_rules! languages {
    ($($name:ident $closes:literal $rules:expr;)*) => {
        /// A language, or one of its orders.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Language {
            $(
                #[doc = concat!("`", stringify!($name), "`")]
                $name,
            )*
        }

        impl Language {
            /// What its rules say.
            pub(super) fn tailoring(self) -> &'static Tailoring {
                match self {
                    $(Language::$name => {
                        static READ: LazyLock<Tailoring> =
                            LazyLock::new(|| Tailoring::read($rules, $closes));
                        &READ
                    })*
                }
            }
        }
    };
}

const SLAVIC: &str = "&c<č<<<Č<ć<<<Ć \
    &d<dž<<<ǆ<<<Dž<<<ǅ<<<DŽ<<<Ǆ<đ<<<Đ \
    &l<lj<<<ǉ<<<Lj<<<ǈ<<<LJ<<<Ǉ \
    &n<nj<<<ǌ<<<Nj<<<ǋ<<<NJ<<<Ǌ \
    &s<š<<<Š &z<ž<<<Ž";
const ESPERANTO: &str = "&c<ĉ<<<Ĉ &g<ĝ<<<Ĝ &h<ĥ<<<Ĥ &j<ĵ<<<Ĵ &s<ŝ<<<Ŝ &u<ŭ<<<Ŭ";
const POLISH: &str = "&a<ą<<<Ą &c<ć<<<Ć &e<ę<<<Ę &l<ł<<<Ł &n<ń<<<Ń &o<ó<<<Ó &s<ś<<<Ś \
    &z<ź<<<Ź<ż<<<Ż";
const SPANISH: &str = "&n<ñ<<<Ñ";
const GERMAN_PHONEBOOK: &str = "&ae<<ä<<<Ä &oe<<ö<<<Ö &ue<<ü<<<Ü";
const LATIN: &str = "&i<<j<<<J &v<<u<<<U";
const NORWEGIAN: &str = "&d<<đ<<<Đ<<ð<<<Ð &th<<<þ &TH<<<Þ &y<<ü<<<Ü<<ű<<<Ű \
    &[before 1]ǀ<æ<<<Æ<<ä<<<Ä<ø<<<Ø<<ö<<<Ö<<ő<<<Ő<å<<<Å<<<aa<<<Aa<<<AA";

languages! {
    // Unicode 4.0.0.
    Icelandic false "&a<á<<<Á &d<ð<<<Ð &e<é<<<É &i<í<<<Í &o<ó<<<Ó &u<ú<<<Ú &y<ý<<<Ý \
        &z<þ<<<Þ<ä<<<Ä<<æ<<<Æ<ö<<<Ö<<ø<<<Ø<å<<<Å";
    Latvian false "&c<č<<<Č &g<ģ<<<Ģ &i<y<<<Y &k<ķ<<<Ķ &l<ļ<<<Ļ &n<ņ<<<Ņ &r<ŗ<<<Ŗ &s<š<<<Š \
        &z<ž<<<Ž";
    Romanian false "&a<ă<<<Ă<â<<<Â &i<î<<<Î &s<ş<<<Ş<<ș<<<Ș &t<ţ<<<Ţ<<ț<<<Ț";
    Slovenian false "&c<č<<<Č &s<š<<<Š &z<ž<<<Ž";
    Polish false POLISH;
    Estonian false "&s<š<<<Š<z<<<Z<ž<<<Ž &w<õ<<<Õ<ä<<<Ä<ö<<<Ö<ü<<<Ü";
    Spanish false SPANISH;
    Swedish false "&y<<ü<<<Ü &z<å<<<Å<ä<<<Ä<<æ<<<Æ<ö<<<Ö<<ø<<<Ø";
    Turkish false "&c<ç<<<Ç &g<ğ<<<Ğ &h<ı<<<I &o<ö<<<Ö &s<ş<<<Ş &u<ü<<<Ü";
    Czech false "&c<č<<<Č &h<ch<<<Ch<<<CH &r<ř<<<Ř &s<š<<<Š &z<ž<<<Ž";
    Danish false "&y<<ü<<<Ü<<ű<<<Ű \
        &z<ä<<<Ä<<æ<<<Æ<ö<<<Ö<<ø<<<Ø<<ő<<<Ő<å<<<Å<<aa<<<Aa<<<AA";
    Lithuanian false "&c<<ch<<<Ch<<<CH<č<<<Č &i<<y<<<Y &s<š<<<Š &z<ž<<<Ž";
    Slovak false "&a<ä<<<Ä &c<č<<<Č &h<ch<<<Ch<<<CH &o<ô<<<Ô &s<š<<<Š &z<ž<<<Ž";
    TraditionalSpanish false "&c<ch<<<Ch<<<CH &l<ll<<<Ll<<<LL &n<ñ<<<Ñ";
    Roman false LATIN;
    Esperanto false ESPERANTO;
    Hungarian false "&o<ö<<<Ö<<ő<<<Ő &u<ü<<<Ü<<ű<<<Ű";
    GermanPhonebook false GERMAN_PHONEBOOK;
    Croatian false SLAVIC;
    Vietnamese false "&a<ă<<<Ă<<ắ<<<Ắ<<ằ<<<Ằ<<ẳ<<<Ẳ<<ẵ<<<Ẵ<<ặ<<<Ặ<â<<<Â<<ấ<<<Ấ<<ầ<<<Ầ<<ẩ<<<Ẩ<<ẫ<<<Ẫ<<ậ<<<Ậ \
        &d<đ<<<Đ &e<ê<<<Ê<<ế<<<Ế<<ề<<<Ề<<ể<<<Ể<<ễ<<<Ễ<<ệ<<<Ệ \
        &o<ô<<<Ô<<ố<<<Ố<<ồ<<<Ồ<<ổ<<<Ổ<<ỗ<<<Ỗ<<ộ<<<Ộ<ơ<<<Ơ<<ớ<<<Ớ<<ờ<<<Ờ<<ở<<<Ở<<ỡ<<<Ỡ<<ợ<<<Ợ \
        &u<ư<<<Ư<<ứ<<<Ứ<<ừ<<<Ừ<<ử<<<Ử<<ữ<<<Ữ<<ự<<<Ự";
    // Unicode 9.0.0.
    De true GERMAN_PHONEBOOK;
    Is true "&[before 1]b<á<<<Á &d<<đ<<<Đ<ð<<<Ð &[before 1]f<é<<<É &[before 1]j<í<<<Í \
        &[before 1]p<ó<<<Ó &[before 1]v<ú<<<Ú &[before 1]z<ý<<<Ý \
        &[before 1]ǀ<æ<<<Æ<<ä<<<Ä<ö<<<Ö<<ø<<<Ø<å<<<Å";
    Lv true "&[before 1]d<č<<<Č &[before 1]h<ģ<<<Ģ &i<<y<<<Y &[before 1]l<ķ<<<Ķ \
        &[before 1]m<ļ<<<Ļ &[before 1]o<ņ<<<Ņ &[before 1]s<ŗ<<<Ŗ &[before 1]t<š<<<Š \
        &[before 1]ʒ<ž<<<Ž";
    Ro true "&a<ă<<<Ă<â<<<Â &i<î<<<Î &s<ș=ş<<<Ș=Ş &t<ț=ţ<<<Ț=Ţ";
    Sl true "&c<č<<<Č<ć<<<Ć &d<đ<<<Đ &s<š<<<Š &z<ž<<<Ž";
    Pl true POLISH;
    Et true "&[before 1]t<š<<<Š<z<<<Z<ž<<<Ž &[before 1]x<õ<<<Õ<ä<<<Ä<ö<<<Ö<ü<<<Ü";
    Es true SPANISH;
    Sv true "&d<<đ<<<Đ<<ð<<<Ð &th<<<þ &TH<<<Þ &y<<ü<<<Ü<<ű<<<Ű \
        &[before 1]ǀ<å<<<Å<ä<<<Ä<<æ<<<Æ<<ę<<<Ę<ö<<<Ö<<ø<<<Ø<<ő<<<Ő<<œ<<<Œ<<ô<<<Ô";
    Tr true "&c<ç<<<Ç &g<ğ<<<Ğ &[before 1]i<ı<<<I &i<<<İ &o<ö<<<Ö &s<ş<<<Ş &u<ü<<<Ü";
    Cs true "&c<č<<<Č &h<ch<<<cH<<<Ch<<<CH &r<ř<<<Ř &s<š<<<Š &z<ž<<<Ž";
    Da true NORWEGIAN;
    Lt true "&a<<ą<<<Ą &c<č<<<Č &e<<ę<<<Ę<<ė<<<Ė &i<<į<<<Į<<y<<<Y &s<š<<<Š &u<<ų<<<Ų<<ū<<<Ū \
        &z<ž<<<Ž";
    Sk true "&a<ä<<<Ä &c<č<<<Č &h<ch<<<cH<<<Ch<<<CH &o<ô<<<Ô &s<š<<<Š &z<ž<<<Ž";
    EsTrad true "&n<ñ<<<Ñ &c<ch<<<Ch<<<CH &l<ll<<<Ll<<<LL";
    La true LATIN;
    Eo true ESPERANTO;
    Hu true "&c<cs<<<Cs<<<CS &d<dz<<<Dz<<<DZ<dzs<<<Dzs<<<DZS &g<gy<<<Gy<<<GY &l<ly<<<Ly<<<LY \
        &n<ny<<<Ny<<<NY &s<sz<<<Sz<<<SZ &t<ty<<<Ty<<<TY &z<zs<<<Zs<<<ZS \
        &cscs<<<ccs<<<Ccs<<<CCS &dzdz<<<ddz<<<Ddz<<<DDZ &dzsdzs<<<ddzs<<<Ddzs<<<DDZS \
        &gygy<<<ggy<<<Ggy<<<GGY &lyly<<<lly<<<Lly<<<LLY &nyny<<<nny<<<Nny<<<NNY \
        &szsz<<<ssz<<<Ssz<<<SSZ &tyty<<<tty<<<Tty<<<TTY &zszs<<<zzs<<<Zzs<<<ZZS \
        &o<ö<<<Ö<<ő<<<Ő &u<ü<<<Ü<<ű<<<Ű";
    Hr true SLAVIC;
    Vi true "&a<ă<<<Ă<â<<<Â &d<đ<<<Đ &e<ê<<<Ê &o<ô<<<Ô<ơ<<<Ơ &u<ư<<<Ư";
    Nb true NORWEGIAN;
}
