//! Words that search treats by what they are, not by how often they stand somewhere.
//!
//! - Function words of each language ([`Language`]): pronouns, articles, prepositions, conjunctions, auxiliaries. They say
//!   how other words belong together and nothing about what a text is about; they are neither indexed nor looked for. They
//!   also tell which language a text is in. Closed classes only, and nothing that is also a name, a month or a thing:
//!   `may`, `will`, `us`, `won` stay out.
//! - English words whose other forms no suffix leads to (`went`, `children`).
//! - Words that say when something was, and words that ask when.
//! - Characters of East Asian scripts that carry grammar.
//!
//! All of them are folded as `fold` does. Knows words; must not know texts, queries or the index.

use std::sync::LazyLock;

/// A language in the Latin script whose words have stems here. Of Cyrillic the script is enough to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Language {
    /// What a text is taken for that says nothing else.
    English,
    German,
    French,
    Spanish,
    Italian,
    Portuguese,
    Dutch,
}

impl Language {
    /// All of them, English first.
    pub(super) const ALL: [Language; 7] = [
        Language::English,
        Language::German,
        Language::French,
        Language::Spanish,
        Language::Italian,
        Language::Portuguese,
        Language::Dutch,
    ];

    /// Its bit in a [`Languages`].
    pub(super) const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// A set of languages, a bit each.
pub(super) type Languages = u16;

/// What a word is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Nature {
    /// In which languages it is a function word.
    pub function: Languages,
    /// It says when.
    pub time: bool,
    /// It asks when.
    pub asks_when: bool,
}

/// What is known of a folded word. Nothing of most.
pub(super) fn nature(word: &str) -> Nature {
    let table: &[(&str, Nature)] = &TABLE;
    match table.binary_search_by_key(&word, |(word, _)| word) {
        Ok(at) => table.get(at).map(|(_, nature)| *nature).unwrap_or_default(),
        Err(_) => Nature::default(),
    }
}

/// The form that stands for an irregular one in English.
pub(super) fn regular(word: &str) -> Option<&'static str> {
    let table: &[(&str, &'static str)] = &IRREGULAR_TABLE;
    let at = table.binary_search_by_key(&word, |(word, _)| word).ok()?;
    table.get(at).map(|(_, regular)| *regular)
}

/// Whether an East Asian character mostly carries grammar: pronouns, particles, the copula, question words.
pub(super) fn is_function_character(c: char) -> bool {
    FUNCTION_CHARACTERS.contains(&c)
}

/// Whether a character is Hiragana, which writes Japanese endings and particles far more often than words.
pub(super) fn is_hiragana(c: char) -> bool {
    matches!(c, 'ぁ'..='ゖ')
}

static TABLE: LazyLock<Vec<(&'static str, Nature)>> = LazyLock::new(|| {
    let mut all: Vec<(&str, Nature)> = Vec::new();
    let mut add = |words: &'static str, change: &dyn Fn(&mut Nature)| {
        for word in words.split_ascii_whitespace() {
            let mut nature = Nature::default();
            change(&mut nature);
            all.push((word, nature));
        }
    };
    for (language, words) in FUNCTION_WORDS {
        add(words, &|nature| nature.function = language.bit());
    }
    add(TIME_WORDS, &|nature| nature.time = true);
    add(ASKS_WHEN, &|nature| nature.asks_when = true);
    all.sort_by_key(|(word, _)| *word);
    all.dedup_by(|later, earlier| {
        let same = later.0 == earlier.0;
        if same {
            earlier.1.function |= later.1.function;
            earlier.1.time |= later.1.time;
            earlier.1.asks_when |= later.1.asks_when;
        }
        same
    });
    all
});

static IRREGULAR_TABLE: LazyLock<Vec<(&'static str, &'static str)>> = LazyLock::new(|| {
    let mut all: Vec<(&str, &str)> = Vec::new();
    for line in IRREGULAR.lines() {
        let mut words = line.split_ascii_whitespace();
        if let Some(regular) = words.next() {
            all.extend(words.map(|word| (word, regular)));
        }
    }
    all.sort_by_key(|(word, _)| *word);
    all
});

/// Single letters are what an apostrophe leaves of `isn't`, `they'll`, `l'avion`, `dell'arte`.
const FUNCTION_WORDS: [(Language, &str); 7] = [
    (
        Language::English,
        "a about after again against all also am among an and any are as at be because been before being between both \
         but by can cannot could did do does doing done during each either else ever every few for from further had has \
         have having he hence her here hers herself him himself his how however i if in into is it its itself just many \
         me might mine more most much must my myself neither no nor not now of off on once one only onto or other our \
         ours ourselves out over own per same shall she should since so some such than that the their theirs them \
         themselves then there these they this those though through thus to too under until up upon very was we were \
         what when where whether which while who whom whose why with within without would yet you your yours yourself \
         yourselves \
         ain aren couldn d didn doesn hadn hasn haven isn ll m mightn mustn needn re s shan shouldn t ve wasn weren \
         wouldn",
    ),
    (
        Language::German,
        "aber als am an auch auf aus bei bin bis bist da damit dann das dass dein deine dem den der des die dir doch du \
         durch ein eine einem einen einer eines er es euch euer für habe haben hat hatte hatten ich ihm ihn ihnen ihr \
         ihre ihrem ihren ihrer im in ist ja jede jeder jedes kann kein keine keinen mein meine meinem meinen meiner mich \
         mir mit nach nicht noch nur ob oder ohne sein seine seinem seinen seiner sich sie sind so über um und uns unser \
         unsere unter vom von vor war waren warum was weil wenn wer werden wie wieder wir wird wo wurde zu zum zur zwischen",
    ),
    (
        Language::French,
        "ai as au aussi aux avec avez avoir avons c ce ces cet cette ceux chez comme d dans de des donc du elle elles en \
         es est et été être eu eux il ils j je l la le les leur leurs lui m ma mais me même mes moi mon n ne nos notre \
         nous on ont ou où par pas pour pourquoi qu que quel quelle quelles quels qui s sa sans se ses si son sont sous \
         suis sur t ta te tes toi ton très tu un une vos votre vous y à ça étaient était",
    ),
    (
        Language::Spanish,
        "a al algo ante aunque como con cual cuál cuando cuándo de del desde donde dónde e el ella ellas ellos en entre \
         era eran eres es esa esas ese eso esos esta está están estas este esto estos estoy fue fueron ha han has hasta hay he \
         la las le les lo los más me mi mis mucho muy nada ni no nos nosotros nuestra nuestro o os para pero por porque \
         pues que qué quien quién se según ser si sí sin sobre son soy su sus también te tengo tiene todo tu tus un una \
         uno unos y ya yo él",
    ),
    (
        Language::Italian,
        "a ad agli ai al alla alle allo anche c che chi ci come con cosa cui d da dagli dai dal dalla dalle de degli dei \
         del della delle dello di dove e ed era erano essere fra gli ha hai hanno ho i il in io l la le lei li lo loro lui \
         ma me mi mia mie miei mio ne negli nei nel nella nelle noi non nostra nostro o per perché però più quale quando \
         quello questa queste questi questo qui quindi se sei senza si sia siamo sono su sua sue sugli sui sul sulla suo \
         suoi te ti tra tu tua tuo un una uno vi voi è",
    ),
    (
        Language::Portuguese,
        "a ao aos as até com como da das de dela dele deles depois do dos e ela elas ele eles em entre era eram essa esse \
         esta está estão estava este eu foi foram há isso isto já lhe mais mas me mesmo meu meus minha minhas muito na nas \
         nem no nos nossa nosso num numa não o onde os ou para pela pelas pelo pelos por porque qual quando que quem se \
         sem ser seu seus só sua suas também te tem tinha um uma umas uns você vocês à às é",
    ),
    (
        Language::Dutch,
        "aan al als bij dan dat de deze die dit doch door dus een en er ging had heb hebben heeft hem het hier hij hoe \
         hun ik in is ja je jij jouw jullie kan kunnen maar me meer men met mij mijn na naar niet nog nu of om omdat ons \
         onze ook op over te toen tot u uit uw van veel voor want waren was wat we wel werd wie wij wordt ze zei zich zij \
         zijn zo zonder zou",
    ),
];

const TIME_WORDS: &str = "\
     yesterday today tonight tomorrow ago last next recently lately earlier since soon day days week weeks weekend \
     weekends month months year years decade morning evening afternoon night summer winter spring autumn \
     monday tuesday wednesday thursday friday saturday sunday \
     january february march april may june july august september october november december \
     gestern heute morgen vorgestern übermorgen letzte letzten letzter nächste nächsten tag tage woche wochen monat \
     monate jahr jahre montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz mai juni juli \
     oktober dezember \
     hier aujourd demain dernier dernière prochain prochaine jour jours semaine semaines mois an ans année années lundi \
     mardi mercredi jeudi vendredi samedi dimanche janvier février mars avril juin juillet août septembre octobre \
     novembre décembre \
     ayer hoy mañana pasado pasada próximo próxima día días semana semanas mes meses año años lunes martes miércoles \
     jueves viernes sábado domingo enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre \
     ieri oggi domani scorso scorsa prossimo prossima giorno giorni settimana settimane mese mesi anno anni lunedì martedì \
     mercoledì giovedì venerdì sabato domenica gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre \
     ontem hoje amanhã passado passada dia dias mês ano anos janeiro fevereiro março maio junho julho setembro outubro \
     novembro dezembro \
     gisteren vandaag morgen vorige volgende dag dagen weken maand maanden jaar jaren maandag dinsdag woensdag donderdag \
     vrijdag zaterdag zondag januari februari maart mei juni juli augustus \
     вчера сегодня завтра назад день дня дней неделя неделю недели месяц месяца месяцев год года лет \
     昨天 今天 明天 昨日 今日 明日 去年 今年 明年 上周 下周 先週 来週 어제 오늘 내일 작년 올해 내년 เมื่อ วันนี้";

const ASKS_WHEN: &str = "\
     when wann quand cuándo quando wanneer когда \
     date dates datum fecha data дата \
     时间 時間 日期 时候 時候 何时 何時 几时 哪年 哪天 哪月 几月 几号 何年 何月 何日 いつ 언제 날짜";

/// A line for each form that stands for the others: first it, then they.
const IRREGULAR: &str = "\
arise arose arisen
be was were been
beat beaten
become became
begin began begun
bend bent
bite bit bitten
bleed bled
blow blew blown
break broke broken
breed bred
bring brought
build built
buy bought
catch caught
child children
choose chose chosen
come came
creep crept
deal dealt
dig dug
draw drew drawn
dream dreamt
drink drank drunk
drive drove driven
eat ate eaten
fall fell fallen
feed fed
feel felt
fight fought
find found
flee fled
fly flew flown
foot feet
forget forgot forgotten
forgive forgave forgiven
freeze froze frozen
get got gotten
give gave given
go went gone goes
good better best
goose geese
grow grew grown
half halves
hang hung
hear heard
hide hid hidden
hold held
keep kept
kneel knelt
knife knives
know knew known
lay laid
lead led
leaf leaves
leap leapt
learn learnt
leave left
lend lent
lie lain
life lives
light lit
loaf loaves
lose lost
make made
man men
mean meant
meet met
mistake mistook mistaken
mouse mice
overcome overcame
pay paid
person people
prove proven
ride rode ridden
ring rang rung
rise rose risen
run ran
say said
see saw seen
seek sought
self selves
sell sold
send sent
shake shook shaken
shelf shelves
shoot shot
show shown
shrink shrank
sing sang sung
sink sank sunk
sit sat
sleep slept
slide slid
speak spoke spoken
spend spent
spin spun
stand stood
steal stole stolen
stick stuck
strike struck
swear swore sworn
sweep swept
swim swam swum
swing swung
take took taken
teach taught
tear tore torn
tell told
thief thieves
think thought
throw threw thrown
tooth teeth
understand understood
undertake undertook undertaken
wake woke woken
wear wore worn
weep wept
wife wives
win won
withdraw withdrew withdrawn
wolf wolves
woman women
worse worst bad
write wrote written
";

const FUNCTION_CHARACTERS: &[char] = &[
    '的', '了', '吗', '嗎', '呢', '吧', '啊', '呀', '哦', '嘛', '么', '麼', '是', '在', '有', '和', '与', '與', '及',
    '也', '都', '就', '很', '还', '還', '又', '被', '把', '给', '給', '让', '讓', '对', '對', '从', '從', '到', '为',
    '為', '以', '之', '其', '而', '但', '或', '我', '你', '他', '她', '它', '们', '們', '您', '这', '這', '那', '哪',
    '谁', '誰', '什', '怎', '个', '個', '着', '著', '过', '過', 'は', 'が', 'を', 'に', 'で', 'と', 'も', 'の', 'へ',
    'や',
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_and_folded() {
        for (word, kind) in TABLE.iter() {
            assert_eq!(nature(word), *kind, "{word}");
            let mut folded = String::new();
            crate::search::fold::fold(word, |c| folded.push(c));
            crate::search::fold::recompose(&mut folded);
            assert_eq!(folded, *word);
        }
        assert!(TABLE.is_sorted_by(|a, b| a.0 < b.0));
        for word in ["will", "us", "won", "", "budget", "猫"] {
            assert_eq!(nature(word), Nature::default(), "{word}");
        }
        assert!(nature("may").time && nature("may").function == 0);
        assert_eq!(
            nature("in").function,
            Language::English.bit() | Language::German.bit() | Language::Italian.bit() | Language::Dutch.bit()
        );
    }

    #[test]
    fn irregular_forms_lead_to_one_regular_form_and_no_further() {
        assert!(IRREGULAR_TABLE.is_sorted_by(|a, b| a.0 < b.0), "a word stands twice");
        for (word, regular_form) in IRREGULAR_TABLE.iter() {
            assert_eq!(regular(word), Some(*regular_form));
            assert_eq!(regular(regular_form), None, "{regular_form}");
        }
        assert_eq!(regular("went"), Some("go"));
        assert_eq!(regular("walked"), None);
    }

    #[test]
    fn characters_that_carry_grammar() {
        assert!(is_function_character('的') && is_function_character('は') && !is_function_character('猫'));
        assert!(is_hiragana('る') && !is_hiragana('ル'));
    }
}
