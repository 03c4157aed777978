//! Names of months and weekdays in the languages that `lc_time_names` knows (MySQL 8.4 manual,
//! 12.16).

/// A language's names, each list's parted by `|`: January and Monday first.
#[derive(Debug)]
pub struct Locale {
    /// The locales that use them, parted by spaces.
    locales: &'static str,
    months: &'static str,
    months_short: &'static str,
    weekdays: &'static str,
    weekdays_short: &'static str,
}

impl Locale {
    /// `en_US`, which is everybody's default.
    pub fn english() -> &'static Locale {
        &LOCALES[0]
    }

    /// By name, in any case: `de_DE`.
    pub fn by_name(name: &str) -> Option<&'static Locale> {
        LOCALES
            .iter()
            .find(|locale| locale.matching_name(name).is_some())
    }

    /// A locale's name as it is shown, found in any case.
    pub fn canonical(name: &str) -> Option<&'static str> {
        LOCALES.iter().find_map(|locale| locale.matching_name(name))
    }

    fn matching_name(&self, name: &str) -> Option<&'static str> {
        self.locales
            .split(' ')
            .find(|known| known.eq_ignore_ascii_case(name))
    }

    /// A month's name, from 1; `None` for month 0.
    pub fn month(&self, month: u32) -> Option<&'static str> {
        self.months.split('|').nth((month as usize).checked_sub(1)?)
    }

    /// A month's short name, from 1.
    pub fn month_short(&self, month: u32) -> Option<&'static str> {
        self.months_short
            .split('|')
            .nth((month as usize).checked_sub(1)?)
    }

    /// A weekday's name; 0 is Monday.
    pub fn weekday(&self, weekday: u32) -> Option<&'static str> {
        self.weekdays.split('|').nth(weekday as usize)
    }

    /// A weekday's short name; 0 is Monday.
    pub fn weekday_short(&self, weekday: u32) -> Option<&'static str> {
        self.weekdays_short.split('|').nth(weekday as usize)
    }
}

const LOCALES: &[Locale] = &[
    Locale {
        locales: "en_AU en_CA en_GB en_IN en_NZ en_PH en_US en_ZA en_ZW",
        months: "January|February|March|April|May|June|July|August|September|October|November|December",
        months_short: "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec",
        weekdays: "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday",
        weekdays_short: "Mon|Tue|Wed|Thu|Fri|Sat|Sun",
    },
    Locale {
        locales: "ar_AE",
        months: "يناير|فبراير|مارس|أبريل|مايو|يونيو|يوليو|أغسطس|سبتمبر|أكتوبر|نوفمبر|ديسمبر",
        months_short: "ينا|فبر|مار|أبر|ماي|يون|يول|أغس|سبت|أكت|نوف|ديس",
        weekdays: "الاثنين|الثلاثاء|الأربعاء|الخميس|الجمعة|السبت |الأحد",
        weekdays_short: "ن|ث|ر|خ|ج|س|ح",
    },
    Locale {
        locales: "ar_BH ar_DZ ar_EG ar_IN ar_IQ ar_KW ar_LY ar_MA ar_OM ar_QA ar_SD ar_TN ar_YE",
        months: "يناير|فبراير|مارس|أبريل|مايو|يونيو|يوليو|أغسطس|سبتمبر|أكتوبر|نوفمبر|ديسمبر",
        months_short: "ينا|فبر|مار|أبر|ماي|يون|يول|أغس|سبت|أكت|نوف|ديس",
        weekdays: "الاثنين|الثلاثاء|الأربعاء|الخميس|الجمعة|السبت|الأحد",
        weekdays_short: "ن|ث|ر|خ|ج|س|ح",
    },
    Locale {
        locales: "ar_JO ar_LB",
        months: "كانون الثاني|شباط|آذار|نيسان|نوار|حزيران|تموز|آب|أيلول|تشرين الأول|تشرين الثاني|كانون الأول",
        months_short: "كانون الثاني|شباط|آذار|نيسان|نوار|حزيران|تموز|آب|أيلول|تشرين الأول|تشرين الثاني|كانون الأول",
        weekdays: "الاثنين|الثلاثاء|الأربعاء|الخميس|الجمعة|السبت|الأحد",
        weekdays_short: "الاثنين|الثلاثاء|الأربعاء|الخميس|الجمعة|السبت|الأحد",
    },
    Locale {
        locales: "ar_SA",
        months: "كانون الثاني|شباط|آذار|نيسـان|أيار|حزيران|تـمـوز|آب|أيلول|تشرين الأول|تشرين الثاني|كانون الأول",
        months_short: "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec",
        weekdays: "الإثنين|الثلاثاء|الأربعاء|الخميس|الجمعـة|السبت|الأحد",
        weekdays_short: "Mon|Tue|Wed|Thu|Fri|Sat|Sun",
    },
    Locale {
        locales: "ar_SY",
        months: "كانون الثاني|شباط|آذار|نيسان|نواران|حزير|تموز|آب|أيلول|تشرين الأول|تشرين الثاني|كانون الأول",
        months_short: "كانون الثاني|شباط|آذار|نيسان|نوار|حزيران|تموز|آب|أيلول|تشرين الأول|تشرين الثاني|كانون الأول",
        weekdays: "الاثنين|الثلاثاء|الأربعاء|الخميس|الجمعة|السبت|الأحد",
        weekdays_short: "الاثنين|الثلاثاء|الأربعاء|الخميس|الجمعة|السبت|الأحد",
    },
    Locale {
        locales: "be_BY",
        months: "Студзень|Люты|Сакавік|Красавік|Травень|Чэрвень|Ліпень|Жнівень|Верасень|Кастрычнік|Лістапад|Снежань",
        months_short: "Стд|Лют|Сак|Крс|Тра|Чэр|Ліп|Жнв|Врс|Кст|Ліс|Снж",
        weekdays: "Панядзелак|Аўторак|Серада|Чацвер|Пятніца|Субота|Нядзеля",
        weekdays_short: "Пан|Аўт|Срд|Чцв|Пят|Суб|Няд",
    },
    Locale {
        locales: "bg_BG",
        months: "януари|февруари|март|април|май|юни|юли|август|септември|октомври|ноември|декември",
        months_short: "яну|фев|мар|апр|май|юни|юли|авг|сеп|окт|ное|дек",
        weekdays: "понеделник|вторник|сряда|четвъртък|петък|събота|неделя",
        weekdays_short: "пн|вт|ср|чт|пт|сб|нд",
    },
    Locale {
        locales: "ca_ES",
        months: "gener|febrer|març|abril|maig|juny|juliol|agost|setembre|octubre|novembre|desembre",
        months_short: "gen|feb|mar|abr|mai|jun|jul|ago|set|oct|nov|des",
        weekdays: "dilluns|dimarts|dimecres|dijous|divendres|dissabte|diumenge",
        weekdays_short: "dl|dt|dc|dj|dv|ds|dg",
    },
    Locale {
        locales: "cs_CZ",
        months: "leden|únor|březen|duben|květen|červen|červenec|srpen|září|říjen|listopad|prosinec",
        months_short: "led|úno|bře|dub|kvě|čen|čec|srp|zář|říj|lis|pro",
        weekdays: "Pondělí|Úterý|Středa|Čtvrtek|Pátek|Sobota|Neděle",
        weekdays_short: "Po|Út|St|Čt|Pá|So|Ne",
    },
    Locale {
        locales: "da_DK",
        months: "januar|februar|marts|april|maj|juni|juli|august|september|oktober|november|december",
        months_short: "jan|feb|mar|apr|maj|jun|jul|aug|sep|okt|nov|dec",
        weekdays: "mandag|tirsdag|onsdag|torsdag|fredag|lørdag|søndag",
        weekdays_short: "man|tir|ons|tor|fre|lør|søn",
    },
    Locale {
        locales: "de_AT",
        months: "Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember",
        months_short: "Jän|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez",
        weekdays: "Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonntag",
        weekdays_short: "Mon|Die|Mit|Don|Fre|Sam|Son",
    },
    Locale {
        locales: "de_BE de_CH de_DE de_LU",
        months: "Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember",
        months_short: "Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez",
        weekdays: "Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonntag",
        weekdays_short: "Mo|Di|Mi|Do|Fr|Sa|So",
    },
    Locale {
        locales: "el_GR",
        months: "Ιανουάριος|Φεβρουάριος|Μάρτιος|Απρίλιος|Μάιος|Ιούνιος|Ιούλιος|Αύγουστος|Σεπτέμβριος|Οκτώβριος|Νοέμβριος|Δεκέμβριος",
        months_short: "Ιαν|Φεβ|Μάρ|Απρ|Μάι|Ιούν|Ιούλ|Αύγ|Σεπ|Οκτ|Νοέ|Δεκ",
        weekdays: "Δευτέρα|Τρίτη|Τετάρτη|Πέμπτη|Παρασκευή|Σάββατο|Κυριακή",
        weekdays_short: "Δευ|Τρί|Τετ|Πέμ|Παρ|Σάβ|Κυρ",
    },
    Locale {
        locales: "es_AR es_BO es_CL es_CO es_CR es_DO es_EC es_ES es_GT es_HN es_MX es_NI es_PA es_PE es_PR es_PY es_SV es_US es_UY es_VE",
        months: "enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre",
        months_short: "ene|feb|mar|abr|may|jun|jul|ago|sep|oct|nov|dic",
        weekdays: "lunes|martes|miércoles|jueves|viernes|sábado|domingo",
        weekdays_short: "lun|mar|mié|jue|vie|sáb|dom",
    },
    Locale {
        locales: "et_EE",
        months: "jaanuar|veebruar|märts|aprill|mai|juuni|juuli|august|september|oktoober|november|detsember",
        months_short: "jaan |veebr|märts|apr  |mai  |juuni|juuli|aug  |sept |okt  |nov  |dets ",
        weekdays: "esmaspäev|teisipäev|kolmapäev|neljapäev|reede|laupäev|pühapäev",
        weekdays_short: "E|T|K|N|R|L|P",
    },
    Locale {
        locales: "eu_ES",
        months: "urtarrila|otsaila|martxoa|apirila|maiatza|ekaina|uztaila|abuztua|iraila|urria|azaroa|abendua",
        months_short: "urt|ots|mar|api|mai|eka|uzt|abu|ira|urr|aza|abe",
        weekdays: "astelehena|asteartea|asteazkena|osteguna|ostirala|larunbata|igandea",
        weekdays_short: "al.|ar.|az.|og.|or.|lr.|ig.",
    },
    Locale {
        locales: "fi_FI",
        months: "tammikuu|helmikuu|maaliskuu|huhtikuu|toukokuu|kesäkuu|heinäkuu|elokuu|syyskuu|lokakuu|marraskuu|joulukuu",
        months_short: "tammi |helmi |maalis|huhti |touko |kesä  |heinä |elo   |syys  |loka  |marras|joulu ",
        weekdays: "maanantai|tiistai|keskiviikko|torstai|perjantai|lauantai|sunnuntai",
        weekdays_short: "ma|ti|ke|to|pe|la|su",
    },
    Locale {
        locales: "fo_FO",
        months: "januar|februar|mars|apríl|mai|juni|juli|august|september|oktober|november|desember",
        months_short: "jan|feb|mar|apr|mai|jun|jul|aug|sep|okt|nov|des",
        weekdays: "mánadagur|týsdagur|mikudagur|hósdagur|fríggjadagur|leygardagur|sunnudagur",
        weekdays_short: "mán|týs|mik|hós|frí|ley|sun",
    },
    Locale {
        locales: "fr_BE fr_CA fr_CH fr_FR fr_LU",
        months: "janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre",
        months_short: "jan|fév|mar|avr|mai|jun|jui|aoû|sep|oct|nov|déc",
        weekdays: "lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche",
        weekdays_short: "lun|mar|mer|jeu|ven|sam|dim",
    },
    Locale {
        locales: "gl_ES",
        months: "Xaneiro|Febreiro|Marzo|Abril|Maio|Xuño|Xullo|Agosto|Setembro|Outubro|Novembro|Decembro",
        months_short: "Xan|Feb|Mar|Abr|Mai|Xuñ|Xul|Ago|Set|Out|Nov|Dec",
        weekdays: "Luns|Martes|Mércores|Xoves|Venres|Sábado|Domingo",
        weekdays_short: "Lun|Mar|Mér|Xov|Ven|Sáb|Dom",
    },
    Locale {
        locales: "gu_IN",
        months: "જાન્યુઆરી|ફેબ્રુઆરી|માર્ચ|એપ્રિલ|મે|જુન|જુલાઇ|ઓગસ્ટ|સેપ્ટેમ્બર|ઓક્ટોબર|નવેમ્બર|ડિસેમ્બર",
        months_short: "જાન|ફેબ|માર|એપ્ર|મે|જુન|જુલ|ઓગ|સેપ્ટ|ઓક્ટ|નોવ|ડિસ",
        weekdays: "સોમવાર|મન્ગળવાર|બુધવાર|ગુરુવાર|શુક્રવાર|શનિવાર|રવિવાર",
        weekdays_short: "સોમ|મન્ગળ|બુધ|ગુરુ|શુક્ર|શનિ|રવિ",
    },
    Locale {
        locales: "he_IL",
        months: "ינואר|פברואר|מרץ|אפריל|מאי|יוני|יולי|אוגוסט|ספטמבר|אוקטובר|נובמבר|דצמבר",
        months_short: "ינו|פבר|מרץ|אפר|מאי|יונ|יול|אוג|ספט|אוק|נוב|דצמ",
        weekdays: "שני|שלישי|רביעי|חמישי|שישי|שבת|ראשון",
        weekdays_short: "ב'|ג'|ד'|ה'|ו'|ש'|א'",
    },
    Locale {
        locales: "hi_IN",
        months: "जनवरी|फ़रवरी|मार्च|अप्रेल|मई|जून|जुलाई|अगस्त|सितम्बर|अक्टूबर|नवम्बर|दिसम्बर",
        months_short: "जनवरी|फ़रवरी|मार्च|अप्रेल|मई|जून|जुलाई|अगस्त|सितम्बर|अक्टूबर|नवम्बर|दिसम्बर",
        weekdays: "सोमवार |मंगलवार |बुधवार |गुरुवार |शुक्रवार |शनिवार |रविवार ",
        weekdays_short: "सोम |मंगल |बुध |गुरु |शुक्र |शनि |रवि ",
    },
    Locale {
        locales: "hr_HR",
        months: "Siječanj|Veljača|Ožujak|Travanj|Svibanj|Lipanj|Srpanj|Kolovoz|Rujan|Listopad|Studeni|Prosinac",
        months_short: "Sij|Vel|Ožu|Tra|Svi|Lip|Srp|Kol|Ruj|Lis|Stu|Pro",
        weekdays: "Ponedjeljak|Utorak|Srijeda|Četvrtak|Petak|Subota|Nedjelja",
        weekdays_short: "Pon|Uto|Sri|Čet|Pet|Sub|Ned",
    },
    Locale {
        locales: "hu_HU",
        months: "január|február|március|április|május|június|július|augusztus|szeptember|október|november|december",
        months_short: "jan|feb|már|ápr|máj|jún|júl|aug|sze|okt|nov|dec",
        weekdays: "hétfő|kedd|szerda|csütörtök|péntek|szombat|vasárnap",
        weekdays_short: "h|k|sze|cs|p|szo|v",
    },
    Locale {
        locales: "id_ID",
        months: "Januari|Februari|Maret|April|Mei|Juni|Juli|Agustus|September|Oktober|November|Desember",
        months_short: "Jan|Feb|Mar|Apr|Mei|Jun|Jul|Agu|Sep|Okt|Nov|Des",
        weekdays: "Senin|Selasa|Rabu|Kamis|Jumat|Sabtu|Minggu",
        weekdays_short: "Sen|Sel|Rab|Kam|Jum|Sab|Min",
    },
    Locale {
        locales: "is_IS",
        months: "janúar|febrúar|mars|apríl|maí|júní|júlí|ágúst|september|október|nóvember|desember",
        months_short: "jan|feb|mar|apr|maí|jún|júl|ágú|sep|okt|nóv|des",
        weekdays: "mánudagur|þriðjudagur|miðvikudagur|fimmtudagur|föstudagur|laugardagur|sunnudagur",
        weekdays_short: "mán|þri|mið|fim|fös|lau|sun",
    },
    Locale {
        locales: "it_CH it_IT",
        months: "gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre",
        months_short: "gen|feb|mar|apr|mag|giu|lug|ago|set|ott|nov|dic",
        weekdays: "lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica",
        weekdays_short: "lun|mar|mer|gio|ven|sab|dom",
    },
    Locale {
        locales: "ja_JP",
        months: "1月|2月|3月|4月|5月|6月|7月|8月|9月|10月|11月|12月",
        months_short: " 1月| 2月| 3月| 4月| 5月| 6月| 7月| 8月| 9月|10月|11月|12月",
        weekdays: "月曜日|火曜日|水曜日|木曜日|金曜日|土曜日|日曜日",
        weekdays_short: "月|火|水|木|金|土|日",
    },
    Locale {
        locales: "ko_KR",
        months: "일월|이월|삼월|사월|오월|유월|칠월|팔월|구월|시월|십일월|십이월",
        months_short: " 1월| 2월| 3월| 4월| 5월| 6월| 7월| 8월| 9월|10월|11월|12월",
        weekdays: "월요일|화요일|수요일|목요일|금요일|토요일|일요일",
        weekdays_short: "월|화|수|목|금|토|일",
    },
    Locale {
        locales: "lt_LT",
        months: "sausio|vasario|kovo|balandžio|gegužės|birželio|liepos|rugpjūčio|rugsėjo|spalio|lapkričio|gruodžio",
        months_short: "Sau|Vas|Kov|Bal|Geg|Bir|Lie|Rgp|Rgs|Spa|Lap|Grd",
        weekdays: "Pirmadienis|Antradienis|Trečiadienis|Ketvirtadienis|Penktadienis|Šeštadienis|Sekmadienis",
        weekdays_short: "Pr|An|Tr|Kt|Pn|Št|Sk",
    },
    Locale {
        locales: "lv_LV",
        months: "janvāris|februāris|marts|aprīlis|maijs|jūnijs|jūlijs|augusts|septembris|oktobris|novembris|decembris",
        months_short: "jan|feb|mar|apr|mai|jūn|jūl|aug|sep|okt|nov|dec",
        weekdays: "pirmdiena|otrdiena|trešdiena|ceturtdiena|piektdiena|sestdiena|svētdiena",
        weekdays_short: "P |O |T |C |Pk|S |Sv",
    },
    Locale {
        locales: "mk_MK",
        months: "јануари|февруари|март|април|мај|јуни|јули|август|септември|октомври|ноември|декември",
        months_short: "јан|фев|мар|апр|мај|јун|јул|авг|сеп|окт|ное|дек",
        weekdays: "понеделник|вторник|среда|четврток|петок|сабота|недела",
        weekdays_short: "пон|вто|сре|чет|пет|саб|нед",
    },
    Locale {
        locales: "mn_MN",
        months: "Нэгдүгээр сар|Хоёрдугаар сар|Гуравдугаар сар|Дөрөвдүгээр сар|Тавдугаар сар|Зургаадугар сар|Долоодугаар сар|Наймдугаар сар|Есдүгээр сар|Аравдугаар сар|Арваннэгдүгээр сар|Арванхоёрдгаар сар",
        months_short: "1-р|2-р|3-р|4-р|5-р|6-р|7-р|8-р|9-р|10-р|11-р|12-р",
        weekdays: "Даваа|Мягмар|Лхагва|Пүрэв|Баасан|Бямба|Ням",
        weekdays_short: "Да|Мя|Лх|Пү|Ба|Бя|Ня",
    },
    Locale {
        locales: "ms_MY",
        months: "Januari|Februari|Mac|April|Mei|Jun|Julai|Ogos|September|Oktober|November|Disember",
        months_short: "Jan|Feb|Mac|Apr|Mei|Jun|Jul|Ogos|Sep|Okt|Nov|Dis",
        weekdays: "Isnin|Selasa|Rabu|Khamis|Jumaat|Sabtu|Ahad",
        weekdays_short: "Isn|Sel|Rab|Kha|Jum|Sab|Ahd",
    },
    Locale {
        locales: "nb_NO no_NO",
        months: "januar|februar|mars|april|mai|juni|juli|august|september|oktober|november|desember",
        months_short: "jan|feb|mar|apr|mai|jun|jul|aug|sep|okt|nov|des",
        weekdays: "mandag|tirsdag|onsdag|torsdag|fredag|lørdag|søndag",
        weekdays_short: "man|tir|ons|tor|fre|lør|søn",
    },
    Locale {
        locales: "nl_BE nl_NL",
        months: "januari|februari|maart|april|mei|juni|juli|augustus|september|oktober|november|december",
        months_short: "jan|feb|mrt|apr|mei|jun|jul|aug|sep|okt|nov|dec",
        weekdays: "maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag",
        weekdays_short: "ma|di|wo|do|vr|za|zo",
    },
    Locale {
        locales: "pl_PL",
        months: "styczeń|luty|marzec|kwiecień|maj|czerwiec|lipiec|sierpień|wrzesień|październik|listopad|grudzień",
        months_short: "sty|lut|mar|kwi|maj|cze|lip|sie|wrz|paź|lis|gru",
        weekdays: "poniedziałek|wtorek|środa|czwartek|piątek|sobota|niedziela",
        weekdays_short: "pon|wto|śro|czw|pią|sob|nie",
    },
    Locale {
        locales: "pt_BR",
        months: "janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro",
        months_short: "Jan|Fev|Mar|Abr|Mai|Jun|Jul|Ago|Set|Out|Nov|Dez",
        weekdays: "segunda|terça|quarta|quinta|sexta|sábado|domingo",
        weekdays_short: "Seg|Ter|Qua|Qui|Sex|Sáb|Dom",
    },
    Locale {
        locales: "pt_PT",
        months: "Janeiro|Fevereiro|Março|Abril|Maio|Junho|Julho|Agosto|Setembro|Outubro|Novembro|Dezembro",
        months_short: "Jan|Fev|Mar|Abr|Mai|Jun|Jul|Ago|Set|Out|Nov|Dez",
        weekdays: "Segunda|Terça|Quarta|Quinta|Sexta|Sábado|Domingo",
        weekdays_short: "Seg|Ter|Qua|Qui|Sex|Sáb|Dom",
    },
    Locale {
        locales: "rm_CH",
        months: "schaner|favrer|mars|avrigl|matg|zercladur|fanadur|avust|settember|october|november|december",
        months_short: "schan|favr|mars|avr|matg|zercl|fan|avust|sett|oct|nov|dec",
        weekdays: "glindesdi|mardi|mesemna|gievgia|venderdi|sonda|dumengia",
        weekdays_short: "gli|ma|me|gie|ve|so|du",
    },
    Locale {
        locales: "ro_RO",
        months: "Ianuarie|Februarie|Martie|Aprilie|Mai|Iunie|Iulie|August|Septembrie|Octombrie|Noiembrie|Decembrie",
        months_short: "ian|feb|mar|apr|mai|iun|iul|aug|sep|oct|nov|dec",
        weekdays: "Luni|Marţi|Miercuri|Joi|Vineri|Sâmbătă|Duminică",
        weekdays_short: "Lu|Ma|Mi|Jo|Vi|Sâ|Du",
    },
    Locale {
        locales: "ru_RU",
        months: "Января|Февраля|Марта|Апреля|Мая|Июня|Июля|Августа|Сентября|Октября|Ноября|Декабря",
        months_short: "Янв|Фев|Мар|Апр|Май|Июн|Июл|Авг|Сен|Окт|Ноя|Дек",
        weekdays: "Понедельник|Вторник|Среда|Четверг|Пятница|Суббота|Воскресенье",
        weekdays_short: "Пнд|Втр|Срд|Чтв|Птн|Сбт|Вск",
    },
    Locale {
        locales: "ru_UA",
        months: "Январь|Февраль|Март|Апрель|Май|Июнь|Июль|Август|Сентябрь|Октябрь|Ноябрь|Декабрь",
        months_short: "Янв|Фев|Мар|Апр|Май|Июн|Июл|Авг|Сен|Окт|Ноя|Дек",
        weekdays: "Понедельник|Вторник|Среда|Четверг|Пятница|Суббота|Воскресенье",
        weekdays_short: "Пнд|Вто|Срд|Чтв|Птн|Суб|Вск",
    },
    Locale {
        locales: "sk_SK",
        months: "január|február|marec|apríl|máj|jún|júl|august|september|október|november|december",
        months_short: "jan|feb|mar|apr|máj|jún|júl|aug|sep|okt|nov|dec",
        weekdays: "Pondelok|Utorok|Streda|Štvrtok|Piatok|Sobota|Nedeľa",
        weekdays_short: "Po|Ut|St|Št|Pi|So|Ne",
    },
    Locale {
        locales: "sl_SI",
        months: "januar|februar|marec|april|maj|junij|julij|avgust|september|oktober|november|december",
        months_short: "jan|feb|mar|apr|maj|jun|jul|avg|sep|okt|nov|dec",
        weekdays: "ponedeljek|torek|sreda|četrtek|petek|sobota|nedelja",
        weekdays_short: "pon|tor|sre|čet|pet|sob|ned",
    },
    Locale {
        locales: "sq_AL",
        months: "janar|shkurt|mars|prill|maj|qershor|korrik|gusht|shtator|tetor|nëntor|dhjetor",
        months_short: "Jan|Shk|Mar|Pri|Maj|Qer|Kor|Gsh|Sht|Tet|Nën|Dhj",
        weekdays: "e hënë |e martë |e mërkurë |e enjte |e premte |e shtunë |e diel ",
        weekdays_short: "Hën |Mar |Mër |Enj |Pre |Sht |Die ",
    },
    Locale {
        locales: "sr_RS",
        months: "januar|februar|mart|april|maj|juni|juli|avgust|septembar|oktobar|novembar|decembar",
        months_short: "jan|feb|mar|apr|maj|jun|jul|avg|sep|okt|nov|dec",
        weekdays: "ponedeljak|utorak|sreda|četvrtak|petak|subota|nedelja",
        weekdays_short: "pon|uto|sre|čet|pet|sub|ned",
    },
    Locale {
        locales: "sv_FI sv_SE",
        months: "januari|februari|mars|april|maj|juni|juli|augusti|september|oktober|november|december",
        months_short: "jan|feb|mar|apr|maj|jun|jul|aug|sep|okt|nov|dec",
        weekdays: "måndag|tisdag|onsdag|torsdag|fredag|lördag|söndag",
        weekdays_short: "mån|tis|ons|tor|fre|lör|sön",
    },
    Locale {
        locales: "ta_IN",
        months: "ஜனவரி|பெப்ரவரி|மார்ச்|ஏப்ரல்|மே|ஜூன்|ஜூலை|ஆகஸ்ட்|செப்டம்பர்|அக்டோபர்|நவம்பர்|டிசம்பர்r",
        months_short: "ஜனவரி|பெப்ரவரி|மார்ச்|ஏப்ரல்|மே|ஜூன்|ஜூலை|ஆகஸ்ட்|செப்டம்பர்|அக்டோபர்|நவம்பர்|டிசம்பர்r",
        weekdays: "திங்கள்|செவ்வாய்|புதன்|வியாழன்|வெள்ளி|சனி|ஞாயிறு",
        weekdays_short: "த|ச|ப|வ|வ|ச|ஞ",
    },
    Locale {
        locales: "te_IN",
        months: "జనవరి|ఫిబ్రవరి|మార్చి|ఏప్రిల్|మే|జూన్|జూలై|ఆగస్టు|సెప్టెంబర్|అక్టోబర్|నవంబర్|డిసెంబర్",
        months_short: "జనవరి|ఫిబ్రవరి|మార్చి|ఏప్రిల్|మే|జూన్|జూలై|ఆగస్టు|సెప్టెంబర్|అక్టోబర్|నవంబర్|డిసెంబర్",
        weekdays: "సోమవారం|మంగళవారం|బుధవారం|గురువారం|శుక్రవారం|శనివారం|ఆదివారం",
        weekdays_short: "సోమ|మంగళ|బుధ|గురు|శుక్ర|శని|ఆది",
    },
    Locale {
        locales: "th_TH",
        months: "มกราคม|กุมภาพันธ์|มีนาคม|เมษายน|พฤษภาคม|มิถุนายน|กรกฎาคม|สิงหาคม|กันยายน|ตุลาคม|พฤศจิกายน|ธันวาคม",
        months_short: "ม.ค.|ก.พ.|มี.ค.|เม.ย.|พ.ค.|มิ.ย.|ก.ค.|ส.ค.|ก.ย.|ต.ค.|พ.ย.|ธ.ค.",
        weekdays: "จันทร์|อังคาร|พุธ|พฤหัสบดี|ศุกร์|เสาร์|อาทิตย์",
        weekdays_short: "จ.|อ.|พ.|พฤ.|ศ.|ส.|อา.",
    },
    Locale {
        locales: "tr_TR",
        months: "Ocak|Şubat|Mart|Nisan|Mayıs|Haziran|Temmuz|Ağustos|Eylül|Ekim|Kasım|Aralık",
        months_short: "Oca|Şub|Mar|Nis|May|Haz|Tem|Ağu|Eyl|Eki|Kas|Ara",
        weekdays: "Pazartesi|Salı|Çarşamba|Perşembe|Cuma|Cumartesi|Pazar",
        weekdays_short: "Pzt|Sal|Çrş|Prş|Cum|Cts|Paz",
    },
    Locale {
        locales: "uk_UA",
        months: "Січень|Лютий|Березень|Квітень|Травень|Червень|Липень|Серпень|Вересень|Жовтень|Листопад|Грудень",
        months_short: "Січ|Лют|Бер|Кві|Тра|Чер|Лип|Сер|Вер|Жов|Лис|Гру",
        weekdays: "Понеділок|Вівторок|Середа|Четвер|П'ятниця|Субота|Неділя",
        weekdays_short: "Пнд|Втр|Срд|Чтв|Птн|Сбт|Ндл",
    },
    Locale {
        locales: "ur_PK",
        months: "جنوري|فروري|مارچ|اپريل|مٓی|جون|جولاي|اگست|ستمبر|اكتوبر|نومبر|دسمبر",
        months_short: "جنوري|فروري|مارچ|اپريل|مٓی|جون|جولاي|اگست|ستمبر|اكتوبر|نومبر|دسمبر",
        weekdays: "پير|منگل|بدھ|جمعرات|جمعه|هفته|اتوار",
        weekdays_short: "پير|منگل|بدھ|جمعرات|جمعه|هفته|اتوار",
    },
    Locale {
        locales: "vi_VN",
        months: "Tháng một|Tháng hai|Tháng ba|Tháng tư|Tháng năm|Tháng sáu|Tháng bảy|Tháng tám|Tháng chín|Tháng mười|Tháng mười một|Tháng mười hai",
        months_short: "Thg 1|Thg 2|Thg 3|Thg 4|Thg 5|Thg 6|Thg 7|Thg 8|Thg 9|Thg 10|Thg 11|Thg 12",
        weekdays: "Thứ hai |Thứ ba |Thứ tư |Thứ năm |Thứ sáu |Thứ bảy |Chủ nhật ",
        weekdays_short: "Th 2 |Th 3 |Th 4 |Th 5 |Th 6 |Th 7 |CN ",
    },
    Locale {
        locales: "zh_CN zh_HK",
        months: "一月|二月|三月|四月|五月|六月|七月|八月|九月|十月|十一月|十二月",
        months_short: " 1月| 2月| 3月| 4月| 5月| 6月| 7月| 8月| 9月|10月|11月|12月",
        weekdays: "星期一|星期二|星期三|星期四|星期五|星期六|星期日",
        weekdays_short: "一|二|三|四|五|六|日",
    },
    Locale {
        locales: "zh_TW",
        months: "一月|二月|三月|四月|五月|六月|七月|八月|九月|十月|十一月|十二月",
        months_short: " 1月| 2月| 3月| 4月| 5月| 6月| 7月| 8月| 9月|10月|11月|12月",
        weekdays: "週一|週二|週三|週四|週五|週六|週日",
        weekdays_short: "一|二|三|四|五|六|日",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::format::{MONTHS, WEEKDAYS};

    #[test]
    fn every_locale_names_twelve_months_and_seven_days() {
        for locale in LOCALES {
            for (list, count) in [
                (locale.months, 12),
                (locale.months_short, 12),
                (locale.weekdays, 7),
                (locale.weekdays_short, 7),
            ] {
                assert_eq!(list.split('|').count(), count, "{list}");
            }
        }
    }

    #[test]
    fn english_is_what_patterns_are_read_in() {
        let english = Locale::english();
        assert!((1..=12).all(|n| english.month(n) == Some(MONTHS[n as usize - 1])));
        assert!((0..7).all(|n| english.weekday(n) == Some(WEEKDAYS[n as usize])));
        assert_eq!(Locale::canonical("DE_de"), Some("de_DE"));
        assert!(Locale::by_name("xx_XX").is_none());
    }
}
